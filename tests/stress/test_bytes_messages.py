"""Messages: whatever comes is a message or an error of the package, and no deeper or longer than can be dealt with."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_sync.errors import ProtocolError
from mcp_sync.jsonrpc import decode, encode, parse

from .grammar import VALUES, messages
from .reading import corpus, read_message, spoilt_everywhere, tried

pytestmark = pytest.mark.usefixtures("no_garbage_of_others")

KEPT = corpus("messages")


@pytest.mark.parametrize("name, data", KEPT, ids=[name for name, _ in KEPT])
def test_what_is_kept_is_read_or_refused(name: str, data: bytes) -> None:
    read_message(data)
    read_message(data.decode("utf-8"))


@pytest.mark.parametrize("name, data", [kept for kept in KEPT if kept[0].endswith(".json")])
def test_what_is_kept_is_read_or_refused_whichever_part_of_it_is_wrong(name: str, data: bytes) -> None:
    for spoilt in spoilt_everywhere(json.loads(data.decode("utf-8"))):
        read_message(json.dumps(spoilt))


@given(st.one_of(messages(), VALUES))
def test_any_value_is_a_message_or_refused(value: Any) -> None:
    text = json.dumps(value)
    assert repr(read_message(text)) == repr(read_message(text.encode("utf-8")))


@given(
    st.one_of(st.binary(max_size=100), st.sampled_from([data for _, data in KEPT])),
    st.integers(0, 200),
    st.binary(max_size=3),
)
def test_any_bytes_are_a_message_or_refused(data: bytes, at: int, other: bytes) -> None:
    read_message(data[:at] + other + data[at + len(other) :])


@given(messages())
def test_a_message_is_what_it_was_after_it_was_sent(message: Any) -> None:
    if not isinstance(message, dict):
        return
    sent = tried(lambda: encode(message))
    if isinstance(sent, bytes):
        assert json.dumps(json.loads(sent.decode("utf-8"))) == json.dumps(message)


@given(st.integers(1, 3000), st.sampled_from(["[", '{"a":', '{"id":1,"result":[', '[{"a":']))
def test_any_depth_is_read_or_refused(depth: int, opened: str) -> None:
    closing = "".join({"[": "]", "{": "}"}.get(char, "") for char in reversed(opened))
    for text in (opened * depth, opened * depth + "1" + closing * depth):
        read_message(text)
        read_message('{"jsonrpc":"2.0","id":1,"result":' + text + "}")


@given(VALUES)
def test_what_is_refused_says_how_it_began(value: Any) -> None:
    try:
        parse(value)
    except ProtocolError as error:
        assert len(str(error)) < 400 and str(error).isprintable()


@pytest.mark.parametrize("digits", [1, 4299, 4300, 4301, 200000])
@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize("rest", ["", ".5", "e5", "e999999"])
def test_a_number_of_any_length_can_be_read_and_shown(sign: str, digits: int, rest: str) -> None:
    number = sign + "7" * digits + rest
    read_message('{"jsonrpc":"2.0","id":%s,"result":{"contents":[{"text":%s}],"ttlMs":%s}}' % (number, number, number))
    read_message('{"jsonrpc":"2.0","id":1,"error":{"code":%s,"message":%s}}' % (number, number))
    repr(decode('{"jsonrpc":"2.0","id":%s,"method":"x"}' % number))
