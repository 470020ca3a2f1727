"""A modern server that asks before it answers: in rounds, by the client's functions, or by whoever makes the call again."""

import multiprocessing
import pickle
from typing import Any, Dict, Iterator, List

import pytest
from rawserver import BOUND, Outcome, Peer, RawServer, json_answer
from serving import MODERN, connected, form, params_of, serving, usable

from mcp_sync import Client, InputRequired, NotSupported, ProtocolError, ResourceNotFound, ServerError, TransportError
from mcp_sync.reads import read_query
from mcp_sync.testing import Refusal, Server, faults

PAGE = {"method": "elicitation/create", "params": {"mode": "url", "message": "go", "url": "https://x.example"}}
SAMPLE = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}
ROOTS = {"method": "roots/list"}
ODD = "é \u2028 ='\"\\ \x00 " + "s" * 1000


@pytest.fixture(params=MODERN)
def server(request: Any) -> "Iterator[Server]":
    with serving(request.param) as server:
        yield server


def answers(server: Server) -> "List[Any]":
    """What came with each call: the answers, and the state."""
    sent = params_of(server, "tools/call")
    return [(params.get("inputResponses", "none"), params.get("requestState", "none")) for params in sent]


# -- rounds ---------------------------------------------------------------------------------------------------------------


def test_an_answer_is_given_and_the_state_comes_back_exactly_as_it_was_under_a_new_id(server: Server) -> None:
    server.add_tool("rename", lambda arguments, call: call.ask({"sure": form()}, ODD)["sure"]["action"])
    with connected(server, on_elicitation=lambda params: True) as client:
        assert client.call_tool("rename", {"to": "x"}).text == "accept"
    assert answers(server) == [("none", "none"), ({"sure": {"action": "accept", "content": {}}}, ODD)]
    first, second = [request for request in server.requests if request.method == "tools/call"]
    assert first.id != second.id
    assert second.params["arguments"] == {"to": "x"} and second.params["name"] == "rename"


def test_where_no_state_came_none_goes_back(server: Server) -> None:
    def tool(arguments: Any, call: Any) -> Any:
        if "second" in call.input_responses:
            return "done"
        if "first" in call.input_responses:
            return {"resultType": "input_required", "inputRequests": {"second": form()}}
        return {"resultType": "input_required", "inputRequests": {"first": form()}, "requestState": "s"}

    server.add_tool("twice", tool)
    with connected(server, on_elicitation=lambda params: None) as client:
        assert client.call_tool("twice").text == "done"
    said = {"action": "decline"}
    assert answers(server) == [("none", "none"), ({"first": said}, "s"), ({"second": said}, "none")]


def test_all_that_is_asked_at_once_is_answered_at_once(server: Server) -> None:
    def tool(arguments: Any, call: Any) -> Any:
        return call.ask({"": form(), "b": SAMPLE, "c": ROOTS, "d": form("Other?", name={"type": "string", "default": "x"})})

    server.add_tool("all", tool)
    said = {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}
    options: Dict[str, Any] = {"roots": ["file:///srv"], "on_sampling": lambda params: said}
    with connected(server, on_elicitation=lambda params: params["message"] == "Other?", **options) as client:
        assert client.call_tool("all").structured_content == {
            "": {"action": "decline"},
            "b": said,
            "c": {"roots": [{"uri": "file:///srv"}]},
            "d": {"action": "accept", "content": {"name": "x"}},
        }


def test_capabilities_are_exactly_what_can_be_answered(server: Server) -> None:
    server.add_tool("quick", lambda arguments, call: "done")
    both: Dict[str, Any] = {"on_elicitation": bool, "elicitation_modes": ("form", "url")}
    for options, capabilities in (
        ({}, {}),
        ({"roots": ["file:///"]}, {"roots": {}}),
        ({"roots": []}, {}),
        ({"on_sampling": dict}, {"sampling": {}}),
        ({"on_elicitation": bool}, {"elicitation": {}}),
        ({"elicitation_modes": ("url",)}, {}),
        ({"on_elicitation": bool, "elicitation_modes": ("url",)}, {"elicitation": {"url": {}}}),
        (both, {"elicitation": {"form": {}, "url": {}}}),
    ):  # type: Any, Any
        server.forget_requests()
        with connected(server, **options) as client:
            client.call_tool("quick")
        (params,) = params_of(server, "tools/call")
        declared = dict(params["_meta"]["io.modelcontextprotocol/clientCapabilities"])
        declared.pop("extensions", None)  # of which others are the tests
        assert declared == capabilities


@pytest.mark.parametrize("modes", [(), ("form", "page"), ("",)])
def test_a_mode_that_there_is_not_is_a_mistake_of_the_programs(modes: Any) -> None:
    with pytest.raises(ValueError, match="elicitation_modes"):
        Client("http://127.0.0.1:1/mcp", elicitation_modes=modes)


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_a_server_that_never_stops_asking_is_asked_no_more(server: Server, rounds: int) -> None:
    def tool(arguments: Any, call: Any) -> Any:
        asked = {"resultType": "input_required", "inputRequests": {"again": form()}}
        return dict(asked, requestState="s%d" % len(answers(server)))

    server.add_tool("never", tool)
    asked: List[Any] = []
    with connected(server, on_elicitation=asked.append, input_required_max_rounds=rounds) as client:
        with pytest.raises(InputRequired, match="input_required_max_rounds") as caught:
            client.call_tool("never", {"a": 1})
        assert len(asked) == rounds and server.count("tools/call") == rounds + 1
        assert caught.value.request_state == "s%d" % (rounds + 1)
        assert caught.value.params == {"name": "never", "arguments": {"a": 1}} and "again" in caught.value.input_requests
        assert usable(client, server)


def test_a_server_that_only_wants_to_be_asked_again_is(server: Server) -> None:
    def tool(arguments: Any, call: Any) -> Any:
        if call.request_state == "b":
            return "done"
        return {"resultType": "input_required", "requestState": "b" if call.request_state == "a" else "a"}

    server.add_tool("later", tool)
    with connected(server) as client:
        assert client.call_tool("later").text == "done"
    assert answers(server) == [("none", "none"), ("none", "a"), ("none", "b")]


@pytest.mark.parametrize("more", [{}, {"inputRequests": {}}, {"inputRequests": []}, {"requestState": 7}, {"requestState": None}])
def test_a_server_that_asks_for_nothing_makes_no_sense(server: Server, more: Any) -> None:
    server.add_tool("odd", lambda arguments: dict({"resultType": "input_required"}, **more))
    with connected(server, on_elicitation=bool) as client:
        with pytest.raises(ProtocolError, match="does not say for what"):
            client.call_tool("odd")
        assert server.count("tools/call") == 1


@pytest.mark.parametrize("asked", [None, 7, [], {"params": {}}, {"method": 3}])
def test_a_question_that_makes_no_sense_is_asked_of_nobody(server: Server, asked: Any) -> None:
    server.add_tool("odd", lambda arguments: {"resultType": "input_required", "inputRequests": {"a": form(), "b": asked}})
    told: List[Any] = []
    with connected(server, on_elicitation=told.append) as client:
        with pytest.raises(ProtocolError, match="makes no sense"):
            client.call_tool("odd")
        assert not told


def test_too_many_questions_at_once_are_asked_of_nobody(server: Server) -> None:
    many = {str(number): form() for number in range(1000)}
    server.add_tool("odd", lambda arguments: {"resultType": "input_required", "inputRequests": many})
    with connected(server, on_elicitation=bool) as client:
        with pytest.raises(ProtocolError, match="1000 inputs at once"):
            client.call_tool("odd")


# -- nobody to ask --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [SAMPLE, ROOTS, PAGE, {"method": "of/the/future", "params": {}}])
def test_if_one_question_has_nobody_to_answer_it_nobody_is_asked_any(server: Server, missing: Any) -> None:
    asked = {"a": form(), "b": missing, "c": form()}
    server.add_tool("ask", lambda arguments: {"resultType": "input_required", "inputRequests": asked, "requestState": ODD})
    told: List[Any] = []
    with connected(server, on_elicitation=told.append) as client:
        with pytest.raises(InputRequired, match="tools/call") as caught:
            client.call_tool("ask", {"x": 1})
        assert not told and server.count("tools/call") == 1
        error = caught.value
        assert (error.method, error.params) == ("tools/call", {"name": "ask", "arguments": {"x": 1}})
        assert error.input_requests == asked and error.request_state == ODD


def test_what_one_client_cannot_answer_is_answered_by_the_same_call_made_again(server: Server) -> None:
    server.add_tool("ask", lambda arguments, call: call.ask({"sure": form()}, ODD)["sure"]["action"])
    with connected(server) as client:
        with pytest.raises(InputRequired) as caught:
            client.call_tool("ask")
        error = pickle.loads(pickle.dumps(caught.value))
        assert str(error) == str(caught.value) and vars(error) == vars(caught.value)
        said = {"sure": {"action": "accept", "content": {}}}
        assert client.call_tool("ask", input_responses=said, request_state=error.request_state).text == "accept"
        assert answers(server)[-1] == (said, ODD)


def test_a_call_that_is_made_again_may_be_asked_more_and_keeps_no_old_answers(server: Server) -> None:
    def tool(arguments: Any, call: Any) -> Any:
        if "second" in call.input_responses:
            return sorted(call.input_responses) and "done"
        return {"resultType": "input_required", "inputRequests": {"second": form()}, "requestState": "new"}

    server.add_tool("ask", tool)
    with connected(server, on_elicitation=bool) as client:
        client.call_tool("ask", input_responses={"first": {"action": "decline"}}, request_state="old")
    assert answers(server) == [
        ({"first": {"action": "decline"}}, "old"),
        ({"second": {"action": "accept", "content": {}}}, "new"),
    ]


def resume(pickled: bytes, command: Any, answering: Any) -> None:
    error = pickle.loads(pickled)
    with Client(command, timeout=BOUND) as client:
        said = {key: {"action": "accept", "content": {}} for key in error.input_requests}
        result = client.call_tool(
            error.params["name"], error.params["arguments"], input_responses=said, request_state=error.request_state
        )
        answering.send(result.text)


def test_another_process_answers_in_place_of_this_one() -> None:
    with serving("modern http") as server, connected(server) as client:
        server.add_tool("ask", lambda arguments, call: call.ask({"sure": form()}, ODD)["sure"]["action"] + arguments["x"])
        with pytest.raises(InputRequired) as caught:
            client.call_tool("ask", {"x": "!"})
        spawn = multiprocessing.get_context("spawn")
        ours, theirs = spawn.Pipe()
        process = spawn.Process(target=resume, args=(pickle.dumps(caught.value), server.url, theirs))
        process.start()
        try:
            theirs.close()
            assert ours.poll(60) and ours.recv() == "accept!"
        finally:
            process.join(60)
            ours.close()
        assert process.exitcode == 0


def test_a_page_is_shown_by_a_client_that_says_that_it_can(server: Server) -> None:
    server.add_tool("ask", lambda arguments, call: call.ask({"page": PAGE})["page"])
    shown: List[Any] = []

    def show(params: Any) -> bool:
        shown.append(params["url"])
        return True

    with connected(server, on_elicitation=show, elicitation_modes=("url",)) as client:
        assert client.call_tool("ask").structured_content == {"action": "accept"}
        assert shown == ["https://x.example"]
        server.add_tool("fill", lambda arguments, call: call.ask({"form": form()})["form"])
        with pytest.raises(InputRequired):
            client.call_tool("fill")


# -- functions that fail --------------------------------------------------------------------------------------------------


class Own(Exception):
    pass


CAUSE = Own("before")
OWN = [
    Own("mine"),
    StopIteration("mine"),
    ServerError("mine", code=-32601),
    ServerError("mine", code=-32020),
    ResourceNotFound("mine", uri="x"),
    TransportError("mine"),
    ProtocolError("mine"),
]


@pytest.mark.parametrize("raised", OWN, ids=repr)
def test_what_a_function_raises_is_what_the_caller_gets_and_the_call_is_not_made_again(
    server: Server, raised: Exception
) -> None:
    def answer(params: Any) -> Any:
        raise raised from CAUSE

    server.add_tool("ask", lambda arguments, call: call.ask({"sure": form()})["sure"])
    server.add_prompt("ask", lambda arguments, call: call.ask({"sure": form()})["sure"])
    with connected(server, on_elicitation=answer) as client:
        for ask in (client.call_tool, client.get_prompt):
            with pytest.raises(type(raised)) as caught:
                ask("ask")
            assert caught.value is raised and raised.__cause__ is CAUSE
        assert (server.count("tools/call"), server.count("prompts/get")) == (1, 1)
        assert usable(client, server)


@pytest.mark.parametrize(
    "answer, error",
    [("accept", TypeError), (3, TypeError), ({"size": "big"}, ValueError), ({"more": object()}, ProtocolError)],
)
def test_a_function_that_returns_nonsense_is_told_so_and_nothing_is_sent(server: Server, answer: Any, error: Any) -> None:
    server.add_tool("ask", lambda arguments, call: call.ask({"sure": form(size={"type": "integer"})})["sure"])
    with connected(server, on_elicitation=lambda params: answer) as client:
        with pytest.raises(error):
            client.call_tool("ask")
        assert server.count("tools/call") == 1 and usable(client, server)


def test_a_model_that_returns_nonsense_is_told_so(server: Server) -> None:
    server.add_tool("ask", lambda arguments, call: call.ask({"say": SAMPLE}))
    with connected(server, on_sampling=lambda params: "hello") as client:
        with pytest.raises(TypeError, match="on_sampling has to return"):
            client.call_tool("ask")


def test_a_function_may_call_the_server(server: Server) -> None:
    server.add("docs://colour", "blue")
    server.add_tool("ask", lambda arguments, call: call.ask({"colour": form(colour={"type": "string"})})["colour"]["content"])
    with connected(server, on_elicitation=lambda params: {"colour": client.read_resource("docs://colour").text}) as client:
        assert client.call_tool("ask").structured_content == {"colour": "blue"}


def test_a_refusal_of_the_server_in_a_later_round_is_its_error(server: Server) -> None:
    def tool(arguments: Any, call: Any) -> Any:
        call.ask({"sure": form()})
        raise Refusal(-32602, "not like that")

    server.add_tool("ask", tool)
    with connected(server, on_elicitation=bool) as client:
        with pytest.raises(ServerError, match="not like that"):
            client.call_tool("ask")
        assert server.count("tools/call") == 2


# -- prompts and resources ------------------------------------------------------------------------------------------------

SECRET = "docs://secret"


def guarded(server: Server) -> None:
    """Have a resource, which there is, read only by those who answer a question."""

    def ask(call: Any) -> Any:
        answer = call.proceed()
        said = call.request.params.get("inputResponses", {}).get("who", {})
        if said.get("action") != "accept":
            result = {"resultType": "input_required", "inputRequests": {"who": form()}, "requestState": ODD}
            answer.response["result"] = result
        return answer

    server.inject(ask, method="resources/read", uri=SECRET, times=None)


def test_a_prompt_is_filled_in_after_a_question(server: Server) -> None:
    server.add_prompt("review", lambda arguments, call: call.ask({"sure": form()})["sure"]["action"])
    with connected(server, on_elicitation=bool) as client:
        (message,) = client.get_prompt("review").messages
        assert message.content.text == "accept"  # type: ignore[union-attr]


def test_what_is_read_after_a_question_is_neither_kept_nor_shown_to_others() -> None:
    # Everything else is kept for an hour here.
    with serving("modern http", ttl_ms=3600000, cache_scope="public") as server:
        guarded(server)
        server.add(SECRET, "for your eyes only")
        server.add("docs://open", "for all")
        asked: List[Any] = []
        with connected(server, on_elicitation=lambda params: not asked.append(params), share_public=True) as client:
            other = client.as_principal("other", headers={"X-Who": "other"})
            for reader in (client, client, other):
                assert reader.read_resource(SECRET).text == "for your eyes only"
                assert reader.read_resource("docs://open").text == "for all"
            assert len(asked) == 3 and server.count("resources/read", uri="docs://open") == 1
            for reader in (client, other):
                assert reader._reads.peek(read_query(SECRET)) is None
                assert reader._reads.peek(read_query("docs://open")) is not None


def test_a_reader_that_cannot_answer_is_asked_and_answers_by_hand(server: Server) -> None:
    server.add(SECRET, "for your eyes only")
    guarded(server)
    with connected(server) as client:
        with pytest.raises(InputRequired) as caught:
            client.read_resource(SECRET)
        assert (caught.value.method, caught.value.params) == ("resources/read", {"uri": SECRET})
        said = {"who": {"action": "accept", "content": {}}}
        options: Dict[str, Any] = {"input_responses": said, "request_state": caught.value.request_state}
        assert client.read_resource(SECRET, **options).text == "for your eyes only"
        with pytest.raises(InputRequired):
            client.read_resource(SECRET)


def test_an_old_copy_is_no_answer_where_the_server_asks_first(server: Server) -> None:
    server.add(SECRET, "for all")
    with connected(server, on_elicitation=bool) as client:
        assert client.read_resource(SECRET).text == "for all"
        server.update(SECRET, "for your eyes only")
        guarded(server)
        result = client.read_resource(SECRET, stale_ok=True)
        assert (result.text, result.stale) == ("for your eyes only", False)


def test_readers_at_the_same_time_are_each_asked(server: Server) -> None:
    server.add(SECRET, "for your eyes only")
    guarded(server)
    asked: List[Any] = []
    with connected(server, on_elicitation=lambda params: not asked.append(params)) as client, client.watch(SECRET):
        with server.hold("resources/read") as gate:
            readers = [Outcome(lambda: client.read_resource(SECRET).text) for _ in range(3)]
            gate.wait_reached()
        assert [reader.value() for reader in readers] == ["for your eyes only"] * 3
        assert len(asked) == 3


def test_a_read_that_goes_on_with_an_answer_is_not_sent_twice() -> None:
    def script(peer: Peer) -> None:
        request = peer.request()
        if "inputResponses" in request.message["params"]:
            peer.reset()
            return
        peer.send(json_answer(request.answer({"resultType": "input_required", "inputRequests": {"who": form()}})))
        peer.request()
        peer.reset()

    with RawServer(script) as server, Client(server.url, era="modern", on_elicitation=bool, timeout=BOUND) as client:
        with pytest.raises(TransportError):
            client.read_resource(SECRET)
        assert len(server.requests) == 2


def test_other_requests_are_not_asked_about() -> None:
    with serving("modern http") as server:
        asked = {"resultType": "input_required", "inputRequests": {"who": form()}}
        server.add_tool("quick", lambda arguments: "done")
        server.inject(faults.Result(asked), method="tools/list", times=None)
        told: List[Any] = []
        with connected(server, on_elicitation=told.append) as client:
            with pytest.raises((InputRequired, NotSupported, ProtocolError)):
                client.list_tools()
            assert not told
            assert client.call_tool("quick").text == "done"
