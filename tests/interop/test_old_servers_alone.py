"""The servers of the legacy eras by themselves, by hand: they do what the tests of the client need, and this is how.

What is observed here and matters to a client:

* A modern question is answered by the Python SDK 1.x with 400, -32600 and the id ``"server-error"``; by ``everything``
  with 400, -32000 and no id. Over stdio it is -32602, -32601, or nothing: 1.2 (and 1.8) fall silent for good, and
  end when the next line comes.
* A session that is not known is 404 from 1.30 and 2.3, 400 in plain text from 1.8, 400 with -32000 from ``everything``.
  The stateless legacy wire of the TypeScript SDK has none, and answers everybody.
* No revision is a matter of the transport: 1.8 speaks 2024-11-05 over streamable HTTP, ``everything`` speaks 2025-11-25
  over HTTP+SSE.
* A resource that does not exist is code 0 from the SDK 1.x, with "Unknown resource" for words; -32602 elsewhere.
* Only ``everything`` and servers that were made for it let resources be subscribed to. The TypeScript SDK says that it
  does, and answers -32601.
* ``everything`` tells of changes to the session that switched it on, at once and then every five seconds; over stdio it
  is then deaf to the end of its input.
"""
import queue
from typing import Any, NamedTuple, Optional
from urllib.parse import urljoin

import pytest
import requests

from . import wire
from .legacy_wire import ACCEPT, INITIALIZED, HTTPSession, StdioSession, events, initialize, messages, request
from .old_server import KINDS, kinds

pytestmark = pytest.mark.interop

MODERN_META = {
    wire.META + "protocolVersion": wire.REVISION,
    wire.META + "clientInfo": {"name": "interop-tests", "version": "1.0"},
    wire.META + "clientCapabilities": {},
}
LONG_ENOUGH_FOR_AN_ANSWER = 2.0
PYTHON_ERROR_ID = "server-error"


class Facts(NamedTuple):
    """What one server is seen to answer over streamable HTTP.

    :param probe: to a modern question: HTTP status, code, id.
    :param unknown: to a session that it does not know: HTTP status, code or None.
    :param subscribes: to ``resources/subscribe``: whether it does.
    :param missing: the code for a resource that is not there.
    :param stream: the HTTP status of the GET.
    """

    probe: Any
    unknown: Any
    subscribes: bool
    missing: int
    stream: int = 200


OVER_HTTP = {
    "mcp-1.30-http": Facts((400, -32600, PYTHON_ERROR_ID), (404, -32600), False, 0),
    "mcp-1.30-subscribing-http": Facts((400, -32600, PYTHON_ERROR_ID), (404, -32600), True, 0),
    "mcp-1.8-http": Facts((400, -32600, PYTHON_ERROR_ID), (400, None), False, 0),
    "mcp-2.3-legacy-http": Facts(None, (404, -32600), False, -32602),
    "typescript-legacy-http": Facts(None, None, False, -32602, stream=405),
    "everything-http": Facts((400, -32000, None), (400, -32000), True, -32602),
}


class OverStdio(NamedTuple):
    """What one server is seen to answer over stdio.

    :param probe: the code to a modern question; None if it is a result, ``"nothing"`` if nothing comes.
    """

    probe: Any
    subscribes: bool
    missing: int


OVER_STDIO = {
    "mcp-1.30-stdio": OverStdio(-32602, False, 0),
    "mcp-1.30-subscribing-stdio": OverStdio(-32602, True, 0),
    "mcp-1.2-stdio": OverStdio("nothing", False, 0),
    "mcp-2.3-stdio": OverStdio(None, False, -32602),
    "typescript-stdio": OverStdio(None, False, -32602),
    "everything-stdio": OverStdio(-32601, True, -32602),
}


def test_every_kind_of_server_is_looked_at():
    assert sorted(OVER_HTTP) == sorted(kinds(transport="http"))
    assert sorted(OVER_STDIO) == sorted(kinds(transport="stdio"))


def test_those_that_are_kept_current_by_subscriptions_are_those_that_let_themselves_be_subscribed_to():
    facts = dict(OVER_HTTP, **OVER_STDIO)
    subscribing = {kind for kind in facts if facts[kind].subscribes}
    assert subscribing == {kind for kind in kinds(keeping="subscribe") if KINDS[kind].transport != "sse"}


def code(answer) -> Optional[int]:
    return answer["error"]["code"] if "error" in answer else None


def code_of_body(response) -> Optional[int]:
    return code(response.json()) if response.headers.get("Content-Type", "").startswith("application/json") else None


def legacy_revision(kind):
    return "2025-11-25" if KINDS[kind].revision == wire.REVISION else KINDS[kind].revision


# -- streamable HTTP ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", OVER_HTTP)
def test_a_modern_question_over_http(of_kind, kind):
    answer = wire.post(of_kind(kind).target, "server/discover")
    message = answer.messages()[-1]
    if OVER_HTTP[kind].probe is None:
        assert wire.REVISION in message["result"]["supportedVersions"]
    else:
        assert (answer.status, code(message), message.get("id")) == OVER_HTTP[kind].probe


@pytest.mark.parametrize("kind", OVER_HTTP)
def test_a_session_over_http_until_it_is_forgotten(of_kind, kind):
    server, facts = of_kind(kind), OVER_HTTP[kind]
    with HTTPSession(server.target) as session:
        assert session.greet()["protocolVersion"] == KINDS[kind].revision
        assert ("Mcp-Session-Id" in session.headers) == KINDS[kind].sessions
        assert session.call("resources/read", uri=server.config)["result"]["contents"][0]["text"] == "retries = 3"
        assert code(session.call("resources/subscribe", uri=server.config)) == (None if facts.subscribes else -32601)
        assert code(session.call("resources/read", uri=server.missing)) == facts.missing
        with session.stream() as stream:
            assert stream.status_code == facts.stream
        server.restart()
        answer = session.post(request("resources/list"))
        if facts.unknown is None:
            assert "result" in messages(answer)[-1]
        else:
            assert (answer.status_code, code_of_body(answer)) == facts.unknown


def test_the_sdk_1_8_sends_every_request_to_another_path(of_kind):
    server = of_kind("mcp-1.8-http")
    for verb in ("POST", "GET", "DELETE"):
        response = requests.request(verb, server.target, headers=ACCEPT, allow_redirects=False, timeout=10)
        assert response.status_code == 307
        assert urljoin(server.target, response.headers["Location"]) == server.target + "/"


@pytest.mark.parametrize("kind", ["mcp-1.30-subscribing-http", "everything-http"])
def test_an_update_comes_on_the_stream_of_the_session_that_subscribed(of_kind, kind):
    server = of_kind(kind)
    with HTTPSession(server.target) as session:
        session.greet()
        with session.stream() as stream:
            session.call("resources/subscribe", uri=server.config)
            if kind == "everything-http":
                session.call("tools/call", name="toggle-subscriber-updates", arguments={})
            else:
                session.call("tools/call", name="touch", arguments={"uri": server.config})
            for _, data in events(stream):
                if "notifications/resources/updated" in data:
                    assert server.config in data
                    break
            else:
                raise AssertionError("the stream ended without an update")


# -- HTTP+SSE ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", kinds(transport="sse"))
def test_http_and_sse(of_kind, kind):
    server = of_kind(kind)
    assert requests.post(server.target, json=initialize(), headers=ACCEPT, timeout=10).status_code in (404, 405)
    with requests.get(server.target, headers={"Accept": "text/event-stream"}, stream=True, timeout=25) as stream:
        told = events(stream)
        name, endpoint = next(told)
        assert (name, endpoint[0]) == ("endpoint", "/")  # a path, and so the same origin
        address = urljoin(server.target, endpoint)
        assert requests.post(address, json=initialize(), timeout=10).status_code == 202
        _, answer = next(told)
        assert '"protocolVersion":"{}"'.format(KINDS[kind].revision) in answer
        assert requests.post(address, json=INITIALIZED, timeout=10).status_code == 202
        asked = request("resources/read", uri=server.config)
        requests.post(address, json=asked, timeout=10)
        assert any("retries = 3" in data for _, data in (next(told) for _ in range(3)))


# -- stdio -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", OVER_STDIO)
def test_a_modern_question_over_stdio(of_kind, kind):
    with StdioSession(of_kind(kind).target) as session:
        if OVER_STDIO[kind].probe != "nothing":
            assert code(session.call("server/discover", _meta=MODERN_META)) == OVER_STDIO[kind].probe
            return
        session.send(request("server/discover", _meta=MODERN_META))
        with pytest.raises(queue.Empty):
            session.next(timeout=LONG_ENOUGH_FOR_AN_ANSWER)
        assert session.process.poll() is None
        session.send(initialize())
        assert session.next() is None
        assert session.ends(timeout=10.0) and session.process.returncode == 1


@pytest.mark.parametrize("kind", OVER_STDIO)
def test_a_session_over_stdio_until_its_input_ends(of_kind, kind):
    server, facts = of_kind(kind), OVER_STDIO[kind]
    with StdioSession(server.target) as session:
        assert session.greet()["protocolVersion"] == legacy_revision(kind)
        answer = session.call("resources/read", uri=server.config)
        assert answer["result"]["contents"][0]["text"] == "retries = 3"
        assert code(session.call("resources/subscribe", uri=server.config)) == (None if facts.subscribes else -32601)
        assert code(session.call("resources/read", uri=server.missing)) == facts.missing
        if kind == "everything-stdio":
            session.call("tools/call", name="toggle-subscriber-updates", arguments={})
            session.process.stdin.close()
            assert not session.ends(timeout=1.0)
            session.process.terminate()
        else:
            session.process.stdin.close()
        assert session.ends(timeout=10.0)
