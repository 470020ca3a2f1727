"""What thousands of kept results have in common is there once."""

from typing import Any, Dict

from mcp_sync import ReadResourceResult
from mcp_sync._deadline import monotonic
from mcp_sync.notices import SubscriptionFilter
from mcp_sync.reader import _compared

URI = "docs://service/config"


def fresh(text: str) -> str:
    """Return an equal text that is another object, as a decoder makes it."""
    return "".join(list(text))


def read(**fields: Any) -> ReadResourceResult:
    part: Dict[str, Any] = {"uri": fresh(URI), "text": "blue", "mimeType": fresh("text/plain"), **fields}
    raw = {"resultType": fresh("complete"), "contents": [part], "cacheScope": fresh("private")}
    return ReadResourceResult.from_wire(raw, URI, 0.0, 0.0, 0.0, monotonic)


def test_values_that_all_results_have_are_shared() -> None:
    one, other = read(), read()
    for name in ("resultType", "cacheScope"):
        assert one.raw[name] is other.raw[name]
    assert one.contents[0].mime_type is other.contents[0].mime_type
    assert one.contents[0].uri is one.uri


def test_a_result_is_what_the_server_sent_all_the_same() -> None:
    assert read().raw["contents"] == [{"uri": URI, "text": "blue", "mimeType": "text/plain"}]
    strange = read(uri=["not a text"], mimeType=7)
    assert strange.raw["contents"] == [{"uri": ["not a text"], "text": "blue", "mimeType": 7}]


def test_a_stream_that_covers_all_that_was_asked_for_shares_its_names() -> None:
    asked = SubscriptionFilter(frozenset(["docs://a", "docs://b"]), resources_list_changed=True)
    granted = SubscriptionFilter(frozenset(["docs://b", "docs://a"]))
    assert _compared(asked, granted).resource_subscriptions is asked.resource_subscriptions
    assert _compared(asked, granted) == granted
    less = SubscriptionFilter(frozenset(["docs://a"]))
    assert _compared(asked, less) == less
