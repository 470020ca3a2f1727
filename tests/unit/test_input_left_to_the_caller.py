"""Whoever is asked for input may leave it to the one who made the call: now, later, or in another process."""

import pickle
from typing import Any, Dict, List

import pytest

from mcp_sync import Client, InputRequired
from mcp_sync.testing import Server

SURE = {
    "method": "elicitation/create",
    "params": {"message": "Sure?", "requestedSchema": {"type": "object", "properties": {"sure": {"type": "boolean"}}}},
}


def delete(arguments: Dict[str, Any], call: Any) -> str:
    answer = call.ask({"sure": SURE}, state="signed")["sure"]
    return "%s %s" % (answer["action"], answer.get("content"))


def not_here(params: Dict[str, Any]) -> None:
    raise InputRequired("nobody is here")


def test_the_server_knows_that_forms_can_be_answered_and_the_caller_can_resume() -> None:
    with Server() as server, Client(server.url, on_elicitation=not_here) as client:
        server.add_tool("delete", delete)
        with pytest.raises(InputRequired) as raised:
            client.call_tool("delete", {"path": "/tmp"})
        meta = server.requests[-1].meta
        assert meta["io.modelcontextprotocol/clientCapabilities"]["elicitation"] == {}
        asked = pickle.loads(pickle.dumps(raised.value))
        assert (asked.method, asked.params) == ("tools/call", {"name": "delete", "arguments": {"path": "/tmp"}})
        assert (asked.input_requests, asked.request_state) == ({"sure": SURE}, "signed")
        with Client(server.url) as another:
            responses = {"sure": {"action": "accept", "content": {"sure": True}}}
            result = another.call_tool(
                "delete", {"path": "/tmp"}, input_responses=responses, request_state=asked.request_state
            )
        assert result.text == "accept {'sure': True}"


def test_a_legacy_server_which_waits_is_told_that_the_form_was_dismissed(caplog: Any) -> None:
    with Server(eras=["legacy"]) as server, Client(server.url, on_elicitation=not_here) as client:
        server.add_tool("delete", delete)
        assert client.call_tool("delete", {}).text == "cancel None"
    assert caplog.records == []


def test_one_who_leaves_the_second_question_leaves_both() -> None:
    def both(arguments: Dict[str, Any], call: Any) -> str:
        return "%d" % len(call.ask({"a": SURE, "b": SURE}))

    asked: List[Any] = []

    def once(params: Dict[str, Any]) -> Any:
        asked.append(params)
        if len(asked) == 2:
            raise InputRequired("not the second")
        return True

    with Server() as server, Client(server.url, on_elicitation=once) as client:
        server.add_tool("both", both)
        with pytest.raises(InputRequired) as raised:
            client.call_tool("both")
        assert sorted(raised.value.input_requests) == ["a", "b"]
        assert client.call_tool("both").text == "2"
