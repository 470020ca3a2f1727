"""What thousands of kept results have in common is there once."""

import copy
import pickle
from typing import Any, Dict, List

import pytest

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


def test_what_a_server_says_with_every_result_is_kept_once() -> None:
    one, other = read(), read()
    assert one._raw is other._raw
    assert one.contents[0]._raw is other.contents[0]._raw  # type: ignore[union-attr]


def test_results_that_are_equal_but_not_the_same_are_each_shown_as_they_came() -> None:
    def raw(**fields: Any) -> List[Any]:
        part = {"text": "blue", "uri": URI}
        result = ReadResourceResult.from_wire({**fields, "contents": [part]}, URI, 0.0, 0.0, 0.0, monotonic)
        assert list(result.raw["contents"][0]) == ["text", "uri"]
        return list(result.raw.items())[:-1]

    assert str(raw(ttlMs=0)) == "[('ttlMs', 0)]"
    assert str(raw(ttlMs=False)) == "[('ttlMs', False)]"
    assert str(raw(ttlMs=0.0)) == "[('ttlMs', 0.0)]"
    assert raw(cacheScope="private", ttlMs=0) == [("cacheScope", "private"), ("ttlMs", 0)]
    assert raw(ttlMs=0, cacheScope="private") == [("ttlMs", 0), ("cacheScope", "private")]


def test_what_is_asked_of_a_result_that_it_has_not_is_an_error_that_says_so() -> None:
    for value in (read(), read().contents[0]):
        with pytest.raises(AttributeError, match="no attribute 'txt'"):
            value.txt  # type: ignore[union-attr]


@pytest.mark.parametrize("fields", [{}, {"annotations": {"lastModified": "2026-01-01T00:00:00Z"}}])
def test_copies_of_a_result_hold_what_the_server_sent(fields: Dict[str, Any]) -> None:
    result = read(**fields)
    for same in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result), result.as_stale()):
        assert same.raw == result.raw and same == result and same.contents[0].raw == result.contents[0].raw
        assert same.last_modified == result.last_modified
