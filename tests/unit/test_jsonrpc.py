"""Messages: what is one, what is none, and whose answer it is."""

import json
import math
from typing import Any

import pytest
from rawserver import Outcome

from mcp_sync.errors import ProtocolError
from mcp_sync.jsonrpc import (
    ALIKE,
    FOREIGN,
    SAME,
    Notification,
    Request,
    RequestIds,
    Response,
    classify_id,
    decode,
    encode,
)

pytestmark = pytest.mark.usefixtures("no_garbage_of_others")

ID = (5 << 32) + 7

# -- reading -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, message",
    [
        ('{"jsonrpc":"2.0","id":1,"result":{"a":1}}', Response(1, {"a": 1}, None)),
        ('{"jsonrpc":"2.0","id":1,"result":{},"error":null}', Response(1, {}, None)),
        ('{"jsonrpc":"2.0","id":1,"result":null}', Response(1, None, None)),
        ('{"jsonrpc":"2.0","id":1,"error":{"code":1}}', Response(1, None, {"code": 1})),
        ('{"jsonrpc":"2.0","error":{"code":1}}', Response(None, None, {"code": 1})),
        ('{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1}}', Response(1, None, {"code": 1})),
        ('{"id":1,"result":{}}', Response(1, {}, None)),
        ('{"jsonrpc":"2.0","method":"x"}', Notification("x", {})),
        ('{"jsonrpc":"2.0","method":"x","params":{"a":1}}', Notification("x", {"a": 1})),
        ('{"jsonrpc":"2.0","method":"x","params":[1]}', Notification("x", {})),
        ('{"jsonrpc":"2.0","method":"x","params":null}', Notification("x", {})),
        ('{"jsonrpc":"2.0","id":0,"method":"x"}', Request(0, "x", {})),
        ('{"jsonrpc":"2.0","id":null,"method":"x"}', Request(None, "x", {})),
        ('\n {"id":1,"result":{}} \r\n', Response(1, {}, None)),
        ('{"id":1,"result":"\\u2028\u2028"}', Response(1, "\u2028\u2028", None)),
        ('{"id":1,"result":"\\ud800"}', Response(1, "\ud800", None)),
        ('{"id":1,"id":2,"result":{}}', Response(2, {}, None)),
    ],
)
def test_messages_are_sorted(text: str, message: Any) -> None:
    assert decode(text) == message
    assert decode(text.encode("utf-8")) == message
    assert decode(b"\xef\xbb\xbf" + text.encode("utf-8")) == message


@pytest.mark.parametrize(
    "data, told",
    [
        (b"", "not JSON: nothing"),
        (b"Service unavailable\n", "not JSON: Service unavailable"),
        (b"{", "not JSON: {"),
        (b'{"id":1,"result":{}} trailing', "not JSON: {"),
        (b'{"id":1,"result":{}}{"id":2,"result":{}}', "not JSON: {"),
        (b'{"id":1,"result":"\xff"}', "not JSON: {"),
        ('{"id":1,"result":{}}'.encode("utf-16"), "not JSON: "),
        ('{"id":1,"result":{}}'.encode("utf-32"), "not JSON: "),
        (b'{"id":1,"result":"a\nb"}', "not JSON: {"),
        (b"[" * 100000, "not JSON: ["),
        (b'{"a":' * 100000, "not JSON: {"),
        (b"[]", "a batch of messages: []"),
        (b'[{"id":1,"result":{}}]', "a batch of messages: "),
        (b"null", "not a JSON-RPC message: null"),
        (b"17", "not a JSON-RPC message: 17"),
        (b'"text"', "not a JSON-RPC message: text"),
        (b"{}", "not a JSON-RPC message: {}"),
        (b'{"jsonrpc":"2.0","id":1}', "not a JSON-RPC message: "),
        (b'{"error":"invalid_token"}', "not a JSON-RPC message: "),
        (b'{"error":null}', "not a JSON-RPC message: "),
        (b'{"id":1,"result":{},"error":"boom"}', "not a JSON-RPC message: "),
        (b'{"method":7}', "not a JSON-RPC message: "),
    ],
)
def test_anything_else_is_refused_and_its_start_is_shown(data: bytes, told: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode(data)
    assert told in str(caught.value)
    assert len(str(caught.value)) < 400


def nested(levels: int) -> str:
    return '{"id":1,"result":' + "[" * (levels - 1) + "]" * (levels - 1) + "}"


def test_a_message_of_too_many_levels_is_refused_before_it_overflows_the_stack() -> None:
    assert decode(nested(200)).id == 1  # type: ignore[union-attr]
    for levels in (201, 300, 500, 900, 5000):
        with pytest.raises(ProtocolError):
            decode(nested(levels))


def test_many_brackets_are_not_many_levels() -> None:
    assert decode(json.dumps({"id": 1, "result": [[] for _ in range(5000)]})).id == 1  # type: ignore[union-attr]
    assert decode(json.dumps({"id": 1, "result": "[{" * 5000})).id == 1  # type: ignore[union-attr]
    assert decode(json.dumps({"id": 1, "result": {"a": {"b": [[1], [2, {"c": "[" * 500}]]}}}))


def test_a_number_of_a_million_digits_takes_no_time() -> None:
    message = Outcome(lambda: decode('{"id":1,"result":%s}' % ("9" * 3000000))).value()
    assert message.result == math.inf
    assert decode('{"id":1,"result":%s}' % ("9" * 400)).result == 10**400 - 1  # type: ignore[union-attr]


# -- writing -----------------------------------------------------------------------------------------------------------


def test_messages_are_written_as_compact_utf_8() -> None:
    assert encode({"a": [1, "世界\u2028"]}) == '{"a":[1,"世界\u2028"]}'.encode("utf-8")


def test_text_that_utf_8_cannot_hold_is_written_as_an_escape() -> None:
    assert json.loads(encode({"uri": "x\ud800"}).decode("ascii")) == {"uri": "x\ud800"}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), b"bytes", {1, 2}])
def test_what_json_has_no_form_for_cannot_be_sent(value: Any) -> None:
    with pytest.raises(ProtocolError, match="cannot be sent as JSON"):
        encode({"params": value})


# -- ids ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "came, fits",
    [
        (ID, SAME),
        (float(ID), ALIKE),
        (str(ID), ALIKE),
        (" %d " % ID, ALIKE),
        ("%d.0" % ID, ALIKE),
        (None, ALIKE),
        (0, ALIKE),
        (0.0, ALIKE),
        (ID + 1, FOREIGN),
        (ID - 1, FOREIGN),
        (1, FOREIGN),
        (-ID, FOREIGN),
        (str(ID + 1), FOREIGN),
        (float(ID) + 0.5, FOREIGN),
        (float("nan"), FOREIGN),
        (float("inf"), FOREIGN),
        (True, FOREIGN),
        (False, FOREIGN),
        ("", FOREIGN),
        ("9" * 5000, FOREIGN),
        ([ID], FOREIGN),
        ({"id": ID}, FOREIGN),
        (10**5000, FOREIGN),
    ],
    ids=lambda value: repr(value)[:20] if not isinstance(value, int) or abs(value) < 2**60 else "huge",
)
def test_the_id_of_an_answer_is_ours_or_mangled_or_another_s(came: Any, fits: str) -> None:
    assert classify_id(ID, came) == fits


def test_ids_are_never_repeated_and_every_json_reader_keeps_them() -> None:
    ids = RequestIds()
    made = [ids.next() for _ in range(1000)]
    assert len(set(made)) == 1000
    assert all(0 < number < 2**53 and int(float(number)) == number for number in made)


def test_a_forked_child_takes_other_ids() -> None:
    ids = RequestIds()
    before = ids.next()
    ids.after_fork_in_child()
    assert abs(ids.next() - before) > 2**31
