"""Lists of tools and prompts: whole, through the cache, and what is left out of them is told once."""

import logging
from typing import Any, Callable, Dict, List

import pytest
from rawserver import BOUND, Outcome, Peer, RawServer, json_answer

from mcp_sync import Client, ListPromptsResult, ListToolsResult, NotSupported


class Lister:
    """Answers each request for a list with what stands in ``items``; counts them."""

    def __init__(self, **fields: Any) -> None:
        self.items: "List[Any]" = []
        self.fields = fields
        self.asked: "List[str]" = []

    def __call__(self, peer: Peer) -> None:
        while True:
            request = peer.request()
            method = request.message["method"]
            self.asked.append(method)
            result: "Dict[str, Any]" = dict(self.fields, **{method.partition("/")[0]: self.items})
            peer.send(json_answer(request.answer(result)))


Listing = Callable[..., Any]
KINDS = [("list_tools", ListToolsResult, "tools/list"), ("list_prompts", ListPromptsResult, "prompts/list")]


@pytest.mark.parametrize("verb, cls, method", KINDS)
def test_a_list_is_kept_as_long_as_the_server_says(verb: str, cls: Any, method: str) -> None:
    lister = Lister(ttlMs=60000)
    lister.items = [{"name": "a"}]
    with RawServer(lister) as server, Client(server.url, timeout=BOUND) as client:
        first = Outcome(lambda: getattr(client, verb)()).value()
        lister.items = [{"name": "b"}]
        assert isinstance(first, cls) and first.names == ("a",)
        assert Outcome(lambda: getattr(client, verb)()).value() is first
        assert Outcome(lambda: getattr(client, verb)(cache_mode="bypass").names).value() == ("b",)
        assert Outcome(lambda: getattr(client, verb)(cache_mode="refresh").names).value() == ("b",)
        assert Outcome(lambda: getattr(client, verb)().names).value() == ("b",)
    assert lister.asked == [method] * 3


@pytest.mark.parametrize("verb, cls, method", KINDS)
def test_a_second_of_one_name_is_told_of_once_and_not_at_every_listing(
    verb: str, cls: Any, method: str, caplog: Any
) -> None:
    lister = Lister()
    lister.items = [{"name": "a", "title": "1"}, {"name": "a", "title": "2"}, {"name": "b\x1b[31m"}, {"name": "b\x1b[31m"}]
    with RawServer(lister) as server, Client(server.url, timeout=BOUND) as client:
        for _ in range(3):
            assert Outcome(lambda: [item.title for item in getattr(client, verb)()]).value() == ["1", None]
    told = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    why = "was left out: another of this name was listed before it, and counts"
    assert told == [
        "%s: %s: a %s" % (server.url, method, why),
        "%s: %s: b\\x1b[31m %s" % (server.url, method, why),
    ]


def test_a_server_of_ten_thousand_bad_names_does_not_fill_the_log(caplog: Any) -> None:
    lister = Lister()
    lister.items = [{"name": str(number % 5000)} for number in range(10000)]
    with RawServer(lister) as server, Client(server.url, timeout=BOUND) as client:
        assert Outcome(lambda: len(client.list_tools())).value() == 5000
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 100


def test_a_server_without_tools_is_said_to_have_none() -> None:
    def script(peer: Peer) -> None:
        while True:
            request = peer.request()
            body = b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32601,"message":"Method not found"}}' % request.id
            if request.message["method"] == "server/discover":
                body = request.answer({"supportedVersions": ["2026-07-28"], "capabilities": {}})
            peer.send(json_answer(body))

    with RawServer(script) as server, Client(server.url, timeout=BOUND, era="modern") as client:
        with pytest.raises(NotSupported, match="does not know tools/list; discover"):
            Outcome(client.list_tools).value()
