"""Event streams: whatever comes, in whatever pieces, gives the same events, and never more memory than allowed."""

import json
import tracemalloc
from typing import Any, List

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_sync._eventstream import EventStream
from mcp_sync.errors import MessageTooLarge
from mcp_sync.jsonrpc import Notification, decode

from .grammar import any_streams, cuts, streams
from .reading import by_the_standard, corpus, outline, read_message

KEPT = corpus("events")
ENDLESS = [b"", b"x", b"data: x", b"data", b":", b"id: 1", b"data: " + b"x" * 500, b"\xff", b"\xef\xbb\xbf"]


@given(st.data())
def test_any_cut_of_any_stream_gives_the_same_events(data: Any) -> None:
    stream = data.draw(any_streams())
    assert outline(data.draw(cuts(stream))) == outline([stream])


@given(st.data(), st.integers(0, 40))
def test_any_cut_meets_the_limit_at_the_same_event(data: Any, limit: int) -> None:
    stream = data.draw(any_streams())
    # What ends a stream ends it as soon as it is seen, so that comments behind it may or may not have been counted.
    assert outline(data.draw(cuts(stream)), limit)[0] == outline([stream], limit)[0]


@given(any_streams())
@example(b"data: a\n: b\n\n")
def test_the_events_are_those_of_the_standard(stream: bytes) -> None:
    events = [None if isinstance(item, str) else item for item in outline([stream])[0]]
    assert events == by_the_standard(stream)


@pytest.mark.parametrize("name, stream", KEPT, ids=[name for name, _ in KEPT])
def test_what_is_kept_gives_the_same_events_wherever_it_is_cut_once(name: str, stream: bytes) -> None:
    whole = outline([stream])
    assert [None if isinstance(item, str) else item for item in whole[0]] == by_the_standard(stream)
    for at in range(len(stream) + 1):
        assert outline([stream[:at], stream[at:]]) == whole, at
    assert outline(stream[at : at + 1] for at in range(len(stream))) == whole


@given(st.data(), st.lists(st.sampled_from(["docs://a", "docs://ä/\u2028", "urn:x"]), max_size=5))
def test_the_notices_of_a_stream_are_the_same_in_any_cut(data: Any, uris: List[str]) -> None:
    stream = b""
    for uri in uris:
        message = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}}
        text = json.dumps(message, ensure_ascii=False, indent=data.draw(st.sampled_from([None, 1])))
        end = data.draw(st.sampled_from(["\n", "\r\n", "\r"]))
        stream += (": x" + end + "".join("data: " + line + end for line in text.split("\n")) + end).encode("utf-8")
    found = [decode(item.data) for item in outline(data.draw(cuts(stream)))[0]]
    assert [message.params["uri"] for message in found if isinstance(message, Notification)] == uris


@given(st.data())
def test_what_comes_of_a_stream_is_read_or_refused_as_a_message(data: Any) -> None:
    for item in outline(data.draw(cuts(data.draw(streams()))))[0]:
        if not isinstance(item, str):
            read_message(item.data)


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n\n"])
@pytest.mark.parametrize("line", ENDLESS)
def test_no_endless_stream_takes_more_memory_than_allowed(line: bytes, end: bytes) -> None:
    limit, chunk = 1 << 13, (line + end) * (1024 // len(line + end or b"x"))
    stream = EventStream((chunk for _ in range(50)), limit)
    tracemalloc.start()
    try:
        for item in stream:
            assert len(getattr(item, "data", "")) <= limit
    except MessageTooLarge:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    # Many short lines are as many objects, each of which weighs some 50 bytes by itself.
    assert peak < 40 * limit, peak


@given(st.data(), st.sets(st.sampled_from("abc"), min_size=1))
def test_what_says_the_same_each_time_is_missed_by_nobody(data: Any, same: Any) -> None:
    """Whatever comes between, and however it is cut: each piece still says all that it says, and all else as often as it does."""
    piece = st.sampled_from(["data: a\n\n", "data: b\n\n", "data: c\n\n", "data:a\n\n", ":\n\n", "id: 1\ndata: b\n\n", "\n"])
    chunks = data.draw(cuts("".join(data.draw(st.lists(piece, max_size=30))).encode("ascii")))

    def said(remembering: bool) -> List[List[str]]:
        of_chunks: List[List[str]] = []

        def fed() -> Any:
            for chunk in chunks:
                of_chunks.append([])
                yield chunk

        stream = EventStream(fed(), 1000)
        for item in stream:
            word = item if isinstance(item, str) else item.data
            of_chunks[-1].append(word)
            if word in same and remembering:
                stream.again(word)
        return of_chunks

    for plain, remembered in zip(said(False), said(True)):
        assert set(remembered) == set(plain)
        assert [word for word in remembered if word not in same] == [word for word in plain if word not in same]
        # The first of each is in its place.
        assert list(dict.fromkeys(remembered)) == list(dict.fromkeys(plain))
