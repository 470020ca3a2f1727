"""What bytes are made of that a server could send: strategies of hypothesis, from nearly right to anything at all."""

import json
from typing import Any, Dict, List

from hypothesis import strategies as st

from .reading import RESULTS, corpus

# -- event streams -----------------------------------------------------------------------------------------------------

_LINE_ENDS = st.sampled_from([b"\n", b"\n", b"\r\n", b"\r"])
_WORDS = [
    b"",
    b"data",
    b"data:",
    b"data: ",
    b"data:  x",
    b"data: x",
    b'data: {"jsonrpc":"2.0","method":"notifications/resources/list_changed"}',
    "data: blå 世界 😀\u2028\u2029\u0085".encode("utf-8"),
    b"data: \xff",
    b"data: \x1e\x1f\x1e",
    b"data: \x00",
    b"event: message",
    b"event:",
    b"event: endpoint",
    b"id: 1",
    b"id",
    b"retry: 3000",
    b"retry: soon",
    b":",
    b": keep-alive",
    b": \xfe",
    b"colour: red",
    b"\xef\xbb\xbfdata: y",
    b"dat",
]
_LINES = st.one_of(
    st.sampled_from(_WORDS),
    st.sampled_from(_WORDS),
    st.builds(lambda word, more: word + more, st.sampled_from(_WORDS), st.binary(max_size=6)),
)


@st.composite
def streams(draw: Any) -> bytes:
    """A stream of events, or what looks like one."""
    beginning: bytes = draw(st.sampled_from([b"", b"", b"\xef\xbb\xbf", b"\xef\xbb"]))
    lines: List[bytes] = []
    for line, end, times in draw(st.lists(st.tuples(_LINES, _LINE_ENDS, st.sampled_from([1, 1, 1, 2, 40])), max_size=20)):
        lines.append((line + end) * times)
    half: bytes = draw(st.one_of(st.just(b""), _LINES))
    return beginning + b"".join(lines) + half


def any_streams() -> Any:
    """Streams, streams of the corpus, and bytes that are none."""
    return st.one_of(streams(), st.sampled_from([data for _, data in corpus("events")]), st.binary(max_size=200))


@st.composite
def cuts(draw: Any, stream: bytes) -> List[bytes]:
    """The pieces of a stream that is cut somewhere, anywhere."""
    if draw(st.integers(0, 5)) == 0:
        return [stream[at : at + 1] for at in range(len(stream))]
    where = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    return [stream[a:b] for a, b in zip([0] + where, where + [len(stream)])]


# -- messages and results ----------------------------------------------------------------------------------------------

_TEXTS = st.one_of(
    st.text(max_size=8),
    st.sampled_from(
        ["", "x", "\ud800", "\u2028", "1", "2026-07-28", "2026-02-30T25:61:61+99:99", "0000-00-00", "aGk=", "a-_", "====", "é"]
        + ["docs://a", "DOCS://a/", "file:///", "%", "urn:x", "text", "image", "resource", "resource_link", "public", "dynamic"]
        + ["complete", "input_required", "task", "http://[::1", "//", "a:b:c", "xn--", "http://%ff/", "\x00", "=?base64?x?="]
        + ["notifications/resources/updated", "notifications/cancelled", "notifications/subscriptions/acknowledged"]
    ),
)
_NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([2**53, 2**63, -(2**63), 10**400, 1e15, 1e308, 0.5, -0.0, float("inf"), float("-inf"), float("nan")]),
)
_LEAVES = st.one_of(st.none(), st.booleans(), _NUMBERS, _TEXTS)


def _of_corpus(kind: str) -> List[Any]:
    return [json.loads(data.decode("utf-8")) for name, data in corpus(kind) if name.endswith(".json")]


def _names(value: Any) -> List[str]:
    if isinstance(value, dict):
        return list(value) + [name for inner in value.values() for name in _names(inner)]
    return [name for inner in value for name in _names(inner)] if isinstance(value, list) else []


def _known_names() -> List[str]:
    names = ["jsonrpc", "id", "method", "error", "code", "message", "data", "supported", "requestId", "notifications"]
    for kind in ("messages", "results"):
        for value in _of_corpus(kind):
            names += _names(value)
    return sorted(set(names))


KNOWN_NAMES = _known_names()
_NAMES = st.one_of(st.sampled_from(KNOWN_NAMES), st.sampled_from(KNOWN_NAMES), st.text(max_size=3))


#: Any JSON value, its names mostly those that mean something, and its numbers also such as JSON does not allow.
VALUES = st.recursive(
    _LEAVES, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_NAMES, inner, max_size=5)), max_leaves=12
)
_SMALL_VALUES = st.one_of(_LEAVES, st.lists(_LEAVES, max_size=2), st.dictionaries(_NAMES, _LEAVES, max_size=2))


@st.composite
def spoilt(draw: Any, value: Any) -> Any:
    """A value with something in it that is another than it was."""
    if draw(st.integers(0, 3)) == 0 or not isinstance(value, (dict, list)) or not value:
        return draw(_SMALL_VALUES)
    if isinstance(value, list):
        at = draw(st.integers(0, len(value) - 1))
        how = draw(st.integers(0, 4))
        if how == 0:
            return value[:at] + value[at + 1 :]
        if how == 1:
            return value + [value[at]]
        return value[:at] + [draw(spoilt(value[at]))] + value[at + 1 :]
    name = draw(st.sampled_from(sorted(value)))
    how = draw(st.integers(0, 5))
    changed: Dict[str, Any] = dict(value)
    if how == 0:
        del changed[name]
    elif how == 1:
        changed[draw(_NAMES)] = draw(_SMALL_VALUES)
    else:
        changed[name] = draw(spoilt(value[name]))
    return changed


_MESSAGES = _of_corpus("messages")
_ANY_RESULT = _of_corpus("results")
_RESULTS = {name[: -len(".json")]: [json.loads(data.decode("utf-8"))] for name, data in corpus("results")}


@st.composite
def messages(draw: Any) -> Any:
    """What could be a message, spoilt once or more often."""
    message = draw(st.sampled_from(_MESSAGES))
    for _ in range(draw(st.integers(0, 3))):
        message = draw(spoilt(message))
    return message


@st.composite
def results(draw: Any) -> Any:
    """What could be a result of a method, spoilt once or more often; and the name of the reading that it is meant for."""
    kind = draw(st.sampled_from(sorted(RESULTS)))
    value = draw(st.one_of(st.sampled_from(_RESULTS[kind]), st.sampled_from(_ANY_RESULT)))
    for _ in range(draw(st.integers(0, 3))):
        value = draw(spoilt(value))
    return kind, value
