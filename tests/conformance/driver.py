"""The client that the conformance suite examines: small programs on this package's public names.

The suite starts it with the server's URL as the last argument, and says in the environment which scenario it plays. What is
looked at is what the package does: a program here lists, calls and reads, and is told nothing of the server.
"""
import json
import os
import sys

from mcp_sync import Client, SkillMismatch


def example(schema):
    """:returns: a value that fits a schema, as somebody would give it who only reads the types."""
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        properties = schema.get("properties", {})
        return {name: example(properties.get(name, {})) for name in schema.get("required", properties)}
    return {"string": "some text", "integer": 5, "number": 2.5, "boolean": True, "array": []}.get(kind)


def answer(params):
    """Fill in a form by examples."""
    return example(params["requestedSchema"])


def accept(params):
    """Accept a form as it is."""
    return True


def list_tools(client, context):
    for tool in client.list_tools():
        print(tool.name)


def call_tools(client, context):
    for tool in client.list_tools():
        result = client.call_tool(tool.name, example(tool.input_schema))
        result.raise_for_error()
        print(tool.name, result.content)


def call_tools_as_told(client, context):
    """Call what the suite orders, with the arguments that it gives."""
    names = [tool.name for tool in client.list_tools()]
    for call in context["toolCalls"]:
        assert call["name"] in names
        client.call_tool(call["name"], call["arguments"]).raise_for_error()


def send_a_schema_back(client, context):
    """Send the schema of each other tool to the tool that takes one."""
    tools = client.list_tools()
    for tool in tools:
        if tool.name != "json_schema_echo":
            client.call_tool("json_schema_echo", {"schema": tool.input_schema}).raise_for_error()


def use_everything(client, context):
    call_tools(client, context)
    for resource in client.list_resources():
        client.read_resource(resource.uri)
    for prompt in client.list_prompts():
        client.get_prompt(prompt.name)


def read_skills(client, context):
    """Load each skill that is listed, and then read what else belongs to it."""
    for entry in client.list_skills():
        try:
            skill = client.read_skill(entry)
        except SkillMismatch as error:
            print("refused:", error)
            continue
        for file in skill.files:
            skill.read(file.path)


def list_skills(client, context):
    """Look at what is listed, and load nothing."""
    for entry in client.list_skills():
        print(entry.name, entry.description)


#: What is played in each scenario, and how the client is made for it.
PROGRAMS = {
    "initialize": (list_tools, {}),
    "tools_call": (call_tools, {}),
    "elicitation-sep1034-client-defaults": (call_tools, {"on_elicitation": accept}),
    "sse-retry": (call_tools, {}),
    "json-schema-2020-12-preservation": (send_a_schema_back, {}),
    "json-schema-ref-no-deref": (list_tools, {}),
    "request-metadata": (
        list_tools,
        {"roots": ["file:///srv/project"], "on_sampling": lambda params: {}, "on_elicitation": answer},
    ),
    "http-standard-headers": (use_everything, {}),
    "http-custom-headers": (call_tools_as_told, {}),
    "http-invalid-tool-headers": (call_tools, {}),
    "sep-2322-client-request-state": (call_tools, {"on_elicitation": answer}),
    "sep-2640-client-no-prefetch": (list_skills, {}),
    "sep-2640-client-verify-digest": (read_skills, {}),
    "sep-2640-client-verify-size": (read_skills, {}),
    "sep-2640-client-verify-frontmatter": (read_skills, {}),
}


def main():
    program, options = PROGRAMS[os.environ["MCP_CONFORMANCE_SCENARIO"]]
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    with Client(sys.argv[-1], timeout=20, **options) as client:
        program(client, context)
        print("spoke", client.protocol_version)


if __name__ == "__main__":
    main()
