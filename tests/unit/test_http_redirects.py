"""Redirects: followed where nothing can be lost by it, and refused with a word on what to do everywhere else."""

from typing import Any

import pytest
from certificates import certificate, server_context
from posting import URI, calling, listening, reading, result, result_from, transport
from rawserver import Outcome, Peer, RawServer, head, json_answer

from mcp_sync.errors import TransportError

TEXTS = {"contents": [{"uri": URI, "text": "x"}]}


def bearer(request: Any) -> Any:
    request.headers["Authorization"] = "Bearer called"
    return request


#: Each way to send credentials.
SECRETS: "Any" = [
    {"headers": {"Authorization": "Bearer t", "X-Api-Key": "k"}},
    {"auth": ("u", "p"), "headers": {"X-Api-Key": "k"}},
    {"auth": bearer, "headers": {"X-Api-Key": "k"}},
]


def moving(status: int, location: str) -> Any:
    """A script that sends whoever asks at ``/mcp`` elsewhere, and answers anywhere else."""

    def script(peer: Peer) -> None:
        while True:
            request = peer.request()
            if request.line.split(" ")[1] == "/mcp":
                body = b"moved"
                peer.send(head("Location: " + location, "Content-Length: 5", status="%d Moved" % status) + body)
            else:
                peer.send(json_answer(request.answer(TEXTS)))

    return script


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("options", SECRETS, ids=["headers", "pair", "callable"])
@pytest.mark.parametrize("relative", ["/other", "other", "//{netloc}/other", "http://{netloc}/other", "/other#x"])
def test_307_and_308_are_followed_on_the_same_origin(status: int, options: Any, relative: str) -> None:
    with RawServer(lambda peer: script(peer)) as server:
        script = moving(status, relative.format(netloc="127.0.0.1:%d" % server.port))
        door = transport(server.url, **options)
        for outgoing in (reading(), calling()):
            assert result(door, outgoing)["contents"][0]["text"] == "x"
            first, second = server.requests[-2:]
            assert second.line == "POST /other HTTP/1.1"
            assert second.body == first.body
            for name in ("authorization", "x-api-key", "mcp-method", "mcp-name", "mcp-protocol-version"):
                assert second.headers[name] == first.headers[name]
        door.close()


@pytest.mark.parametrize("location", ["/oth%20er?x=1&y=%C3%A9", "/oth er?x=1&y=\u00c3\u00a9"])
def test_what_an_address_may_not_hold_is_escaped(location: str) -> None:
    # Headers are Latin-1 on the wire; the two characters at the end are one of UTF-8.
    with RawServer(moving(307, location)) as server:
        result_from(server.url)
        assert server.requests[1].line == "POST /oth%20er?x=1&y=%C3%A9 HTTP/1.1"


@pytest.mark.parametrize("status", [301, 302, 303])
@pytest.mark.parametrize("location", ["/other", "https://elsewhere.example/mcp", ""])
def test_301_302_and_303_are_refused_and_name_the_other_address(status: int, location: str) -> None:
    with RawServer(moving(status, location)) as server:
        caught = Outcome(lambda: result_from(server.url, calling())).error()
        assert len(server.requests) == 1
    assert type(caught) is TransportError
    target = {"": "none", "/other": server.url.replace("/mcp", "/other")}.get(location, location)
    assert "answered %d and names another address: %s. " % (status, target) in str(caught)
    assert "use that address for the client" in str(caught) and str(caught).endswith("; the request was not executed")
    assert (caught.status, caught.may_have_run, caught.headers["Location"]) == (status, False, location)


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("options", SECRETS, ids=["headers", "pair", "callable"])
def test_no_credential_goes_to_another_origin(status: int, options: Any) -> None:
    with RawServer(lambda peer: None) as other:
        for origin in ("http://127.0.0.1:%d/x", "http://localhost:%d/x", "//127.0.0.1:%d/x", "http://u@127.0.0.1:%d/x"):
            with RawServer(moving(status, origin % other.port)) as server:
                caught = Outcome(lambda: result_from(server.url, **options)).error()
            assert type(caught) is TransportError
            assert "sends the client to another origin: " in str(caught) and str(other.port) in str(caught)
            assert not caught.may_have_run
        assert other.connections == 0


@pytest.mark.parametrize(
    "location",
    [
        "https://127.0.0.1:{port}/other",  # another scheme is another origin, in either direction
        "http://127.0.0.1/other",
        "http://127.0.0.2:{port}/other",
        "ftp://127.0.0.1:{port}/other",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "http://[::1",
        "http://127.0.0.1:port/",
        "http://127.0.0.1:99999999/",
    ],
)
def test_what_is_no_address_of_the_same_origin_is_not_followed(location: str) -> None:
    with RawServer(lambda peer: script(peer)) as server:
        script = moving(308, location.format(port=server.port))
        caught = Outcome(lambda: result_from(server.url)).error()
        assert type(caught) is TransportError and "another origin" in str(caught)
        assert len(server.requests) == 1


def test_https_is_not_left_for_http() -> None:
    with RawServer(lambda peer: None) as plain:
        with RawServer(moving(307, "http://127.0.0.1:%d/other" % plain.port), tls=server_context()) as server:
            caught = Outcome(lambda: result_from(server.url, verify=certificate()[0])).error()
        assert type(caught) is TransportError and "another origin" in str(caught)
        assert plain.connections == 0


@pytest.mark.parametrize("status", [307, 308])
def test_a_redirect_without_an_address_is_refused(status: int) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(head("Content-Length: 0", status="%d Moved" % status))

    with RawServer(script) as server:
        caught = Outcome(lambda: result_from(server.url)).error()
    assert type(caught) is TransportError and "names another address: none" in str(caught)


@pytest.mark.parametrize("outgoing", [reading, calling, listening], ids=["read", "call", "listen"])
def test_a_circle_ends(outgoing: Any) -> None:
    with RawServer(moving(307, "/mcp")) as server:
        caught = Outcome(lambda: result_from(server.url, outgoing())).error()
        assert len(server.requests) == 6
    assert type(caught) is TransportError and "redirects in circles (6 times" in str(caught)
    assert not caught.may_have_run


def test_a_redirect_through_a_proxy_names_the_whole_address() -> None:
    def proxying(peer: Peer) -> None:
        while True:
            request = peer.request()
            if request.line.startswith("POST http://docs.invalid/mcp "):
                peer.send(head("Location: /other", "Content-Length: 0", status="307 Moved"))
            else:
                peer.send(json_answer(request.answer(TEXTS)))

    with RawServer(proxying) as proxy:
        result_from("http://docs.invalid/mcp", proxies={"http": "http://127.0.0.1:%d" % proxy.port})
        assert [request.line for request in proxy.requests] == [
            "POST http://docs.invalid/mcp HTTP/1.1",
            "POST http://docs.invalid/other HTTP/1.1",
        ]
