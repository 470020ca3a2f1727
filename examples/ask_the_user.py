"""A tool asks the user something before it answers: at once, on the console; or later, in another process.

    python ask_the_user.py                                              a server of its own, which asks
    python ask_the_user.py http://127.0.0.1:8000/mcp book '{"to": "Rome"}'
"""

import json
import os
import pickle
import sys
import tempfile
from typing import Any, Dict, Optional

from mcp_sync import Client, InputRequired
from mcp_sync.testing import Server


def ask_on_the_console(params: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """Ask for each field of a form. What is left empty is taken from the form's defaults; None declines."""
    print("The server asks: %s" % params.get("message"))
    values: Dict[str, Any] = {}
    for name, field in params.get("requestedSchema", {}).get("properties", {}).items():
        default = " [%s]" % field["default"] if "default" in field else ""
        try:
            typed = input("%s%s: " % (field.get("title", name), default))
        except EOFError:
            return None
        if typed:
            values[name] = int(typed) if field.get("type") == "integer" else typed
    return values


def ask_now(server: str, tool: str, arguments: Dict[str, Any]) -> None:
    with Client(server, on_elicitation=ask_on_the_console) as client:
        print(client.call_tool(tool, arguments).text)


# -- Where nobody can wait for the user: a web site shows a form, and its next request has the answers. ------------------


def leave_it(params: Dict[str, Any]) -> None:
    raise InputRequired("the user is asked later")


def begin(server: str, tool: str, arguments: Dict[str, Any], file: str) -> None:
    """The first request: call the tool, and store what it asks for."""
    with Client(server, on_elicitation=leave_it) as client:
        try:
            print(client.call_tool(tool, arguments).text)
        except InputRequired as asked:
            for key, request in asked.input_requests.items():
                print("to be asked later, %s: %s" % (key, request["params"]["message"]))
            with open(file, "wb") as stored:
                pickle.dump(asked, stored)


def resume(server: str, file: str, answers: Dict[str, Dict[str, Any]]) -> None:
    """The second request, in another process or on another day: the same call again, with the answers."""
    with open(file, "rb") as stored:
        asked: InputRequired = pickle.load(stored)
    responses = {key: {"action": "accept", "content": values} for key, values in answers.items()}
    with Client(server) as client:
        result = client.call_tool(
            asked.params["name"],
            asked.params.get("arguments"),
            input_responses=responses,
            request_state=asked.request_state,
        )
        print(result.text)


def book(arguments: Dict[str, Any], call: Any) -> str:
    """A tool that asks. (It is written for the server of this example; others have their own ways.)"""
    fields = {"seats": {"type": "integer", "title": "Seats", "default": 1}, "name": {"type": "string", "title": "Name"}}
    form = {"message": "Who flies to %s?" % arguments["to"], "requestedSchema": {"type": "object", "properties": fields}}
    answer = call.ask({"who": {"method": "elicitation/create", "params": form}}, state="signed by the server")["who"]
    if answer["action"] != "accept":
        return "Not booked."
    return "Booked: %(seats)d to %(to)s for %(name)s" % dict(answer["content"], **arguments)


def main() -> None:
    if len(sys.argv) > 1:
        ask_now(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]) if len(sys.argv) > 3 else {})
        return
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        server.add_tool("book", book)
        ask_now(server.url, "book", {"to": "Rome"})
        begin(server.url, "book", {"to": "Oslo"}, os.path.join(folder, "asked"))
        resume(server.url, os.path.join(folder, "asked"), {"who": {"seats": 2, "name": "Ada"}})


if __name__ == "__main__":
    main()
