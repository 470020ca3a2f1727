"""Bytes to events: any cut, any line end, any bad byte, and no more memory than allowed."""

import random
import tracemalloc
from typing import Any, Iterable, Iterator, List, Tuple

import pytest
from rawserver import Outcome

from mcp_sync._eventstream import Event, EventStream
from mcp_sync.errors import MessageTooLarge, ProtocolError

LIMIT = 1 << 20


def read(chunks: "Iterable[bytes]", limit: int = LIMIT) -> "List[Any]":
    return list(EventStream(iter(chunks), limit))


def data(chunks: "Iterable[bytes]", limit: int = LIMIT) -> "List[str]":
    return [event.data for event in read(chunks, limit)]


def event(text: str, name: str = "message", id: "Any" = None, retry: "Any" = None) -> Event:
    return Event(name, text, id, retry)


# -- what an event is --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "stream, expected",
    [
        (b"data: x\n\n", [event("x")]),
        (b"data:x\n\n", [event("x")]),
        (b"data:  x \n\n", [event(" x ")]),
        (b"data: a\ndata: b\n\n", [event("a\nb")]),
        (b"data: a\ndata\ndata:\ndata: b\n\n", [event("a\n\n\nb")]),
        (b"event: endpoint\ndata: /x\n\n", [event("/x", "endpoint")]),
        (b"data: /x\nevent: endpoint\n\n", [event("/x", "endpoint")]),
        (b"event:\ndata: x\n\n", [event("x")]),
        (b"id: 7\nretry: 3000\ndata: x\n\n", [event("x", id="7", retry="3000")]),
        (b"id: 1\nid: 2\ndata: x\n\n", [event("x", id="2")]),
        (b"data: a: b\n\n", [event("a: b")]),
        (b"colour: red\ndata: x\n\n", [event("x")]),
        (b"DATA: y\ndata: x\n\n", [event("x")]),
        (b"data: x\n\n\n\n\n\ndata: y\n\n", [event("x"), event("y")]),
        (b"\n\n\ndata: x\n\n", [event("x")]),
        # The name of one event is not that of the next.
        (b"event: a\ndata: x\n\ndata: y\n\n", [event("x", "a"), event("y")]),
        (b"event: a\n\ndata: y\n\n", [event("y")]),
        (b"", []),
        (b"\n", []),
        (b"data: \x00\n\n", [event("\x00")]),
    ],
)
def test_fields_mean_what_the_standard_says(stream: bytes, expected: "List[Event]") -> None:
    assert read([stream]) == expected


def test_only_line_feed_and_carriage_return_end_a_line() -> None:
    text = '"a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg\x1dh\x1ei\u00a0"'
    assert data([b"data: " + text.encode("utf-8") + b"\n\n"]) == [text]


def test_text_is_utf_8_whatever_it_holds() -> None:
    text = "blå 世界 😀 \ufeff é"
    assert data([b"data: " + text.encode("utf-8") + b"\n\n"]) == [text]


def test_a_priming_event_holds_no_data() -> None:
    assert data([b"id: 1\nretry: 3000\ndata:\n\ndata: x\n\n"]) == ["", "x"]


@pytest.mark.parametrize("half", [b"data: half", b"data: x\n", b"data: x\r", b"\xef\xbb", b": comment", b"id: 4\nda"])
def test_half_an_event_at_the_end_is_no_event(half: bytes) -> None:
    assert data([b"data: x\n\n" + half]) == ["x"]
    assert data([half]) == []


# -- line ends ---------------------------------------------------------------------------------------------------------

MIXED_ENDS = [
    b"\n\n",
    b"\r\r",
    b"\r\n\r\n",
    b"\n\r\n",
    b"\r\n\n",
    b"\n\r",
    b"\r\r\n",
]


@pytest.mark.parametrize("end", MIXED_ENDS)
def test_every_pair_of_line_ends_closes_an_event(end: bytes) -> None:
    assert data([b"data: x" + end + b"data: y" + end]) == ["x", "y"]


def test_a_carriage_return_and_a_line_feed_are_one_end_wherever_they_are_cut() -> None:
    assert data([b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n", b"data: c\r\n\r", b"\n"]) == ["a\nb", "c"]


def test_an_event_is_there_as_soon_as_its_last_line_end_is() -> None:
    waiting = []  # type: List[bytes]

    def chunks() -> "Iterator[bytes]":
        yield b"data: x\r\n\r"
        raise AssertionError("more was asked for: %r" % waiting)

    assert next(EventStream(chunks(), LIMIT)).data == "x"


# -- any cut -----------------------------------------------------------------------------------------------------------

STREAM = (
    b"\xef\xbb\xbf: hello\r\n\r\nid: 1\r\nretry: 3000\r\ndata:\r\n\r\n"
    + 'event: message\r\ndata: {"text": "blå 世界 😀\u2028"}\r\n\r\n'.encode("utf-8")
    + b": ping\n:\n:\r\n\r\ndata: a\ndata: b\r\r"
    + b"data: bad \xff byte\n\ndata: good\n\n"
    + b"".join(b"data: %d\n" % number for number in range(40))
    + b"id: many\n\n"
    + b"event: other\r\ndata: x\r\n\r\n\ndata: half"
)


def outline(chunks: "Iterable[bytes]") -> "Tuple[List[Any], int]":
    stream = EventStream(iter(chunks), LIMIT)
    return [item if isinstance(item, Event) else str(item) for item in stream], stream.comments


WHOLE = outline([STREAM])


def test_the_whole_stream_is_what_it_should_be() -> None:
    events, comments = WHOLE
    assert comments == 4
    assert events == [
        event("", id="1", retry="3000"),
        event('{"text": "blå 世界 😀\u2028"}'),
        event("a\nb"),
        "the server sent an event that is not UTF-8: data: bad \ufffd byte",
        event("good"),
        event("\n".join(str(number) for number in range(40)), id="many"),
        event("x", "other"),
    ]


def test_one_cut_anywhere_changes_nothing() -> None:
    for at in range(len(STREAM) + 1):
        assert outline([STREAM[:at], STREAM[at:]]) == WHOLE, at


def test_two_cuts_anywhere_near_each_other_change_nothing() -> None:
    for at in range(len(STREAM)):
        for width in (1, 2, 3):
            assert outline([STREAM[:at], STREAM[at : at + width], b"", STREAM[at + width :]]) == WHOLE, (at, width)


def test_one_byte_at_a_time_changes_nothing() -> None:
    assert outline(STREAM[at : at + 1] for at in range(len(STREAM))) == WHOLE


@pytest.mark.parametrize("seed", range(200))
def test_random_cuts_change_nothing(seed: int) -> None:
    chance = random.Random(seed)
    cuts = sorted(chance.randrange(len(STREAM)) for _ in range(chance.randrange(1, 60)))
    pieces = [STREAM[a:b] for a, b in zip([0] + cuts, cuts + [len(STREAM)])]
    assert outline(pieces) == WHOLE


def random_stream(chance: random.Random) -> bytes:
    ends = [b"\n", b"\r", b"\r\n"]
    lines = [b"", b"", b"data: x", b"data:", b"data", b": c", b":", b"id: 1", b"event: e", b"\xff", b"data: \xc3\xa9"]
    stream = b"\xef\xbb\xbf" if chance.random() < 0.3 else b""
    for _ in range(chance.randrange(1, 80)):
        stream += chance.choice(lines) + chance.choice(ends)
    return stream


@pytest.mark.parametrize("seed", range(200))
def test_random_streams_are_the_same_in_any_cut(seed: int) -> None:
    chance = random.Random(seed)
    stream = random_stream(chance)
    whole = outline([stream])
    assert outline(stream[at : at + 1] for at in range(len(stream))) == whole
    for _ in range(5):
        at = chance.randrange(len(stream) + 1)
        assert outline([stream[:at], stream[at:]]) == whole


# -- byte-order marks --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "chunks",
    [
        [b"\xef\xbb\xbfdata: x\n\n"],
        [b"\xef", b"\xbb", b"\xbf", b"data: x\n\n"],
        [b"\xef\xbb", b"", b"\xbfdata: x\n\n"],
        [b"\xef\xbb\xbf", b"data: x\n\n"],
        [b"", b"\xef", b"\xbb\xbfd", b"ata: x\n\n"],
    ],
)
def test_a_byte_order_mark_costs_no_event(chunks: "List[bytes]") -> None:
    assert data(chunks) == ["x"]


def test_what_only_begins_like_a_byte_order_mark_is_kept() -> None:
    assert data([b"\xef", b"\xbb\xbe: 1\ndata: y\n\ndata: x\n\n"]) == ["y", "x"]
    # A second one is text like any other: the name of an unknown field.
    assert data([b"\xef\xbb\xbf\xef\xbb\xbfdata: x\n\n"]) == []


# -- bad bytes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf0\x9f\x98"])
def test_an_undecodable_byte_costs_one_event(bad: bytes) -> None:
    events = read([b"data: a\n\ndata: b" + bad + b"\n\ndata: c\n\n" + b"data: " + bad + b"\n\ndata: d\n\n"])
    assert [type(item) for item in events] == [Event, ProtocolError, Event, ProtocolError, Event]
    assert [item.data for item in events if isinstance(item, Event)] == ["a", "c", "d"]
    assert "not UTF-8: data: b" in str(events[1])


@pytest.mark.parametrize("lines", [1, 31, 32, 33, 100])
@pytest.mark.parametrize("bad", [b"colour: \xff", b"id: \xc3\nid: 1", b"data: \xf0\x9f"])
def test_an_undecodable_byte_costs_an_event_of_any_length_whichever_line_it_is_in(bad: bytes, lines: int) -> None:
    events = read([b"data: x\n" * lines + bad + b"\n" + b"data: y\n" * lines + b"\ndata: z\n\n"])
    assert [type(item) for item in events] == [ProtocolError, Event]
    assert "not UTF-8: data: x" in str(events[0]) and events[1].data == "z"


def test_an_undecodable_byte_in_a_comment_costs_nothing() -> None:
    assert data([b": \xff\xfe\n\ndata: x\n: \xff\n\n"]) == ["x"]


# -- signs of life -----------------------------------------------------------------------------------------------------


def test_comments_are_counted_as_they_come_with_or_without_an_empty_line() -> None:
    counts = []

    def chunks() -> "Iterator[bytes]":
        for piece in (b":\r\n", b": keep-alive\n", b"\n", b":", b" ping\n\n", b"data: x\n: within\n\n"):
            yield piece
            counts.append(stream.comments)

    stream = EventStream(chunks(), LIMIT)
    assert [item.data for item in stream] == ["x"]
    assert counts == [1, 2, 2, 2, 3, 4]


def test_comments_without_an_empty_line_take_no_memory() -> None:
    # A quiet stream may live for weeks: its keep-alives are no part of an event that is to come.
    stream = EventStream(iter([b": keep-alive\n"] * 10000 + [b"data: x\n\n"]), 100)
    assert [item.data for item in stream] == ["x"]
    assert stream.comments == 10000


# -- size --------------------------------------------------------------------------------------------------------------


def every_cut(stream: bytes) -> "Iterator[List[bytes]]":
    yield [stream]
    for at in range(1, len(stream)):
        yield [stream[:at], stream[at:]]
    yield [stream[at : at + 1] for at in range(len(stream))]


def test_an_event_as_long_as_the_limit_passes_in_any_cut() -> None:
    stream = b"data: abcd\ndata: ef\n\ndata: abcd\r\ndata: ef\r\n\r\n"
    for pieces in every_cut(stream):
        assert data(pieces, limit=len(b"data: abcd\ndata: ef")) == ["abcd\nef"] * 2


def test_one_byte_more_is_refused_in_any_cut() -> None:
    for pieces in every_cut(b"data: x\n\ndata: abcd\ndata: ef\n\n"):
        stream = EventStream(iter(pieces), len(b"data: abcd\ndata: ef") - 1)
        assert next(stream).data == "x"
        with pytest.raises(MessageTooLarge, match=r"more than 18 bytes \(max_message_bytes\); it began: data: x"):
            next(stream)
        assert list(stream) == []


@pytest.mark.parametrize("piece", [b"x" * 1000, b"data: x\n", b": comment " + b"x" * 1000])
def test_an_endless_event_is_refused_while_it_comes(piece: bytes) -> None:
    taken = []

    def chunks() -> "Iterator[bytes]":
        while True:
            taken.append(len(piece))
            yield piece
            assert sum(taken) < 20000, "more is read than may be kept"

    with pytest.raises(MessageTooLarge):
        read(chunks(), limit=10000)


# -- what is remembered ------------------------------------------------------------------------------------------------

def meant(chunks: "Iterable[bytes]") -> "List[str]":
    """What comes of a stream on which "a" and "b" say the same each time: "(a)" is "a" that was not read once more."""
    stream = EventStream(iter(chunks), LIMIT)
    said = []
    for item in stream:
        if isinstance(item, str):
            said.append(item)
        elif isinstance(item, ProtocolError):
            said.append("!")
        else:
            said.append(item.data)
            if item.data in ("a", "b"):
                stream.again("(%s)" % item.data)
    return said


def test_what_says_the_same_each_time_is_read_once_and_counts_once_for_all_that_came_together() -> None:
    a, b = b"data: a\n\n", b"data: b\n\n"
    assert meant([a + b]) == ["a", "b"]
    assert meant([a + b, a + b, b, b]) == ["a", "b", "(a)", "(b)", "(b)", "(b)"]
    assert meant([a, a + a + a, a + a]) == ["a", "(a)", "(a)"]
    assert meant([a + b, a + b + a + b + b]) == ["a", "b", "(a)", "(b)"]


def test_what_may_count_each_time_does_so_and_what_comes_between_keeps_its_place() -> None:
    a, b, x, bad = b"data: a\n\n", b"data: b\n\n", b"data: x\n\n", b"data: \xff\n\n"
    assert meant([a, x + a + x + bad + a + bad + x]) == ["a", "x", "(a)", "x", "!", "!", "x"]
    # What was not known when it arrived is taken one by one.
    assert meant([a, a + b + a + b]) == ["a", "(a)", "b", "(b)"]
    assert data([b"data: x\n\nid: 1\n\nid: 1\n\nevent: e\n\ndata: x\n\n"]) == ["x", "x"]


@pytest.mark.parametrize("fields", [b"id: 1\n", b"retry: 5\n"])
def test_an_event_by_which_a_stream_is_resumed_is_read_each_time(fields: bytes) -> None:
    event = fields + b"data: a\n\n"
    assert meant([event + event, event + event]) == ["a"] * 4


def test_only_the_very_event_is_known_again() -> None:
    pieces = [b"data: a\n\n", b"event: e\ndata: a\n\n", b"data:a\n\n", b"data: a\n: comment\n\n", b"data: a\n\n"]
    assert meant(pieces) == ["a", "a", "a", "a", "(a)"]
    assert meant([pieces[0], b"".join(pieces)]) == ["a", "(a)", "a", "a", "a"]
    # Nor is one remembered for what is said of another.
    stream = EventStream(iter([b"data: a\n\n", b"data: b\n\ndata: a\n\n", b"data: b\n\n"]), LIMIT)
    assert next(stream) == event("a")
    stream.again("(a)")
    assert [next(stream), next(stream)] == [event("b"), "(a)"]
    stream.again("(b)")
    assert next(stream) == event("b")


@pytest.mark.parametrize("lines", [32, 33])
def test_a_document_of_many_lines_is_not_taken_for_a_line_that_looks_like_what_is_made_of_it(lines: int) -> None:
    one_line = b"data: " + b"\x1e\x1f\x1e".join([b"x"] * lines) + b"\n\n"
    many = b"data: x\n" * lines + b"\n"
    texts = ["\n".join("x" * lines), one_line[6:-2].decode("ascii")]
    assert data([many + one_line + many + one_line]) == texts * 2


def test_no_document_of_many_lines_is_known_again() -> None:
    # Nor what sseclient-py is given in its place.
    stream = EventStream(iter([b"data: x\n" * 40 + b"\n"] * 2), LIMIT)
    for item in stream:
        assert isinstance(item, Event)
        stream.again("known")


@pytest.mark.parametrize("length, count", [(500, 20000), (50000, 300)])
def test_what_is_remembered_does_not_grow_with_the_stream(length: int, count: int) -> None:
    def chunks() -> "Iterator[bytes]":
        for number in range(count):
            yield b"data: %d %s\n\n" % (number, b"x" * length)

    stream = EventStream(chunks(), LIMIT)
    tracemalloc.start()
    try:
        for number, item in enumerate(stream):
            stream.again(item)
        assert number == count - 1
        del item
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 22, (held, peak)


# -- time: each of these is instant, or takes minutes if it is quadratic -----------------------------------------------


def cut(stream: bytes, size: int) -> "Iterator[bytes]":
    return (stream[at : at + size] for at in range(0, len(stream), size))


@pytest.mark.parametrize("size", [7, 1400, 65536])
def test_a_hundred_thousand_events_are_read_in_linear_time(size: int) -> None:
    stream = b"".join(b"event: message\r\ndata: %d\r\n\r\n" % number for number in range(100000))
    assert Outcome(lambda: data(cut(stream, size))).value() == [str(number) for number in range(100000)]


@pytest.mark.parametrize("size", [1, 1400])
def test_a_large_message_in_small_pieces_is_read_in_linear_time(size: int) -> None:
    text = "x" * (200 * 1024 if size == 1 else 8 * 1024 * 1024)
    stream = b"data: " + text.encode("ascii") + b"\n\n"
    assert Outcome(lambda: data(cut(stream, size), 1 << 24)).value() == [text]


@pytest.mark.parametrize("line", [b"data: ", b"data", b"id: 1", b"colour: red"])
def test_an_event_of_a_million_lines_is_read_in_linear_time(line: bytes) -> None:
    stream = (line + b"\n") * 1000000 + b"data: x\n\n"
    [text] = Outcome(lambda: data(cut(stream, 65536), 1 << 26)).value()
    assert len(text) == (1000001 if line.startswith(b"data") else 1)


def test_a_document_over_many_lines_keeps_each_of_them() -> None:
    for lines in (1, 31, 32, 33, 34, 1000):
        text = "\n".join(" {%d}" % number for number in range(lines))
        stream = "".join("data: %s\n" % line for line in text.split("\n")) + "event: e\nid: 3\n\n"
        assert read([stream.encode("ascii")]) == [event(text, "e", id="3")]


@pytest.mark.parametrize("between", [b"x", b"\ndata: "], ids=["in one line", "in many lines"])
def test_a_large_event_is_let_go_of_before_the_next_one_comes(between: bytes) -> None:
    # An acknowledgement names all that is watched, and after it there may be nothing for hours.
    held: List[int] = []

    def chunks() -> Iterator[bytes]:
        yield b"data: "
        for _ in range(64):
            yield b"x" * 65535 + between
        yield b"\n\n"
        held.append(tracemalloc.get_traced_memory()[0])
        yield b": a sign of life\n\n"

    tracemalloc.start()
    try:
        for event in EventStream(chunks(), 1 << 23):
            assert len(event.data) >= 64 * 65535
            del event
    finally:
        tracemalloc.stop()
    assert held[0] < 65536 * 4
