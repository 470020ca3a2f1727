"""See which tools a server has, call one, and look at what it answers.

    python call_a_tool.py                                                    a server of its own
    python call_a_tool.py http://127.0.0.1:8000/mcp                          which tools there are
    python call_a_tool.py http://127.0.0.1:8000/mcp divide '{"a": 7, "b": 2}'
"""

import json
import sys
from typing import Any, Dict

from mcp_sync import Client, ImageContent, ServerError, ToolError
from mcp_sync.testing import Server


def show_tools(client: Client) -> None:
    for tool in client.list_tools():
        print("%s: %s" % (tool.name, tool.description or "(no description)"))


def call(client: Client, name: str, arguments: Dict[str, Any]) -> None:
    try:
        result = client.call_tool(name, arguments, timeout=20).raise_for_error()
    except ToolError as error:
        # The tool ran, and says itself why it failed; error.result has all that it answered.
        print("failed: %s" % error)
    except ServerError as error:
        # It did not run: there is no such tool, or it does not take these arguments.
        print("refused: %s" % error)
    else:
        print("text: %s" % result.text)
        if result.has_structured_content:
            print("for programs: %s" % json.dumps(result.structured_content))
        for block in result.content:
            if isinstance(block, ImageContent):
                print("an image of %d bytes" % len(block.data))


def divide(arguments: Dict[str, Any]) -> Dict[str, Any]:
    whole, rest = divmod(arguments["a"], arguments["b"])
    return {"whole": whole, "rest": rest}


def main() -> None:
    if len(sys.argv) > 1:
        with Client(sys.argv[1]) as client:
            if len(sys.argv) > 2:
                call(client, sys.argv[2], json.loads(sys.argv[3]) if len(sys.argv) > 3 else {})
            else:
                show_tools(client)
        return
    with Server() as server, Client(server.url) as client:
        server.add_tool("divide", divide, description="Divides, and keeps the rest")
        show_tools(client)
        call(client, "divide", {"a": 7, "b": 2})
        call(client, "divide", {"a": 7, "b": 0})
        call(client, "multiply", {"a": 7, "b": 2})


if __name__ == "__main__":
    main()
