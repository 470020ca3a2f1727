"""Lists are whole lists: every page, each thing once, and an end even if the server knows none."""

import json
from typing import Any, Callable, Dict, List

import pytest
from rawserver import BOUND, Outcome, Peer, RawServer, json_answer

from mcp_sync import Client
from mcp_sync.errors import ProtocolError, ServerError
from mcp_sync.jsonrpc import INVALID_PARAMS
from mcp_sync.testing import Server, faults


def paging(page: "Callable[[Any, int], Dict[str, Any]]") -> "Callable[[Peer], None]":
    """A script that answers each request for a list with ``page(cursor, number of the request)``."""
    asked: "List[Any]" = []

    def script(peer: Peer) -> None:
        while True:
            request = peer.request()
            asked.append(request.message["params"].get("cursor", "<none>"))
            result = page(asked[-1], len(asked))
            if "error" in result:
                body = json.dumps(dict(result, jsonrpc="2.0", id=request.id)).encode("utf-8")
                peer.send(json_answer(body, status="400 Bad Request"))
            else:
                peer.send(json_answer(request.answer(result)))

    return script


def listed(page: "Callable[[Any, int], Dict[str, Any]]") -> Any:
    """The URIs that a client lists."""
    with RawServer(paging(page)) as server:
        with Client(server.url, timeout=BOUND) as client:
            return Outcome(lambda: client.list_resources().uris).value()


def resources(*uris: str, cursor: Any = None) -> "Dict[str, Any]":
    page: "Dict[str, Any]" = {"resources": [{"uri": uri, "name": uri} for uri in uris]}
    if cursor is not None:
        page["nextCursor"] = cursor
    return page


@pytest.mark.parametrize("size", [None, 1, 2, 3, 7, 100])
@pytest.mark.parametrize("answer", ["json", "sse"])
def test_a_list_is_the_same_in_pages_of_any_size(size: Any, answer: str) -> None:
    uris = ["docs://%02d" % number for number in range(7)]
    with Server(page_size=size, answer=answer) as server:
        for uri in uris:
            server.add(uri, "x")
            server.add_template(uri + "{x}", "x")
        with Client(server.url) as client:
            assert list(client.list_resources().uris) == uris
            templates = client.list_resource_templates()
            assert [template.uri_template for template in templates] == [uri + "{x}" for uri in uris]


def test_an_empty_text_is_a_cursor_like_any_other() -> None:
    pages = {"<none>": resources("a", cursor=""), "": resources("b", cursor="x"), "x": resources("c")}
    assert listed(lambda cursor, number: pages[cursor]) == ("a", "b", "c")


@pytest.mark.parametrize("cursor", ["0", "null", " ", "世界", "a\r\nb", "x" * 100000])
def test_a_cursor_is_handed_back_untouched(cursor: str) -> None:
    pages = {"<none>": resources("a", cursor=cursor), cursor: resources("b")}
    assert listed(lambda asked, number: pages[asked]) == ("a", "b")


def test_no_cursor_and_null_are_the_end() -> None:
    assert listed(lambda cursor, number: resources("a")) == ("a",)
    assert listed(lambda cursor, number: dict(resources("a"), nextCursor=None)) == ("a",)


@pytest.mark.parametrize("cursor", [7, 0, True, False, 1.5, ["x"], {}, []])
def test_a_cursor_that_is_no_text_is_refused(cursor: Any) -> None:
    with pytest.raises(ProtocolError, match="a cursor of resources/list that is no text"):
        listed(lambda asked, number: resources("a", cursor=cursor))


@pytest.mark.parametrize("length", [1, 2, 5])
def test_cursors_that_go_in_a_circle_are_an_error_after_one_round(length: int) -> None:
    asked = []

    def page(cursor: Any, number: int) -> "Dict[str, Any]":
        asked.append(cursor)
        return resources("a", cursor=str(number % length))

    with pytest.raises(ProtocolError, match="the pages of resources/list do not end"):
        listed(page)
    assert len(asked) <= length + 1


def test_pages_without_end_are_an_error_in_the_end(monkeypatch: Any) -> None:
    monkeypatch.setattr("mcp_sync.reads._MAX_PAGES", 50)
    with pytest.raises(ProtocolError, match="the pages of resources/list do not end"):
        listed(lambda cursor, number: resources("a%d" % number, cursor=str(number)))


def test_what_moved_between_two_pages_is_listed_once() -> None:
    pages = {"<none>": resources("a", "b", cursor="1"), "1": resources("b", "c", cursor="2"), "2": resources("a", "d")}
    assert listed(lambda cursor, number: pages[cursor]) == ("a", "b", "c", "d")


def test_a_cursor_that_has_expired_begins_the_list_again_once() -> None:
    def page(cursor: Any, number: int) -> "Dict[str, Any]":
        if number == 2:
            return {"error": {"code": INVALID_PARAMS, "message": "Invalid cursor"}}
        return resources("a", "b", cursor="1") if cursor == "<none>" else resources("c")

    assert listed(page) == ("a", "b", "c")


def test_a_cursor_that_is_never_valid_is_the_server_s_error() -> None:
    with Server(page_size=1) as server:
        server.add("docs://a", "x")
        server.add("docs://b", "x")

        def refuse(call: Any) -> Any:
            if "cursor" in call.request.params:
                return faults.JsonRpcError(INVALID_PARAMS, "Invalid cursor", http_status=400)(call)
            return call.proceed()

        server.inject(refuse, method="resources/list", times=None)
        with Client(server.url) as client:
            with pytest.raises(ServerError, match="Invalid cursor") as caught:
                client.list_resources()
        assert caught.value.code == INVALID_PARAMS
        assert server.count("resources/list") == 4


def test_the_whole_list_is_kept_no_longer_than_its_most_short_lived_page() -> None:
    def page(cursor: Any, number: int) -> "Dict[str, Any]":
        if cursor == "<none>":
            return dict(resources("a", cursor="1"), ttlMs=3600000, cacheScope="public")
        return dict(resources("b"), ttlMs=0, cacheScope="public")

    with RawServer(paging(page)) as server:
        with Client(server.url) as client:
            assert client.list_resources().ttl == 0.0
            client.list_resources()
        assert len([request for request in server.requests if request.message["method"] == "resources/list"]) == 4
