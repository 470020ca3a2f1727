"""The error tree: what is caught by what, and that every error survives the way to another process."""

import copy
import multiprocessing
import pickle
from typing import Any, Dict, List, Type

import pytest

import mcp_sync
from mcp_sync import errors
from mcp_sync.errors import (
    AuthorizationError,
    Cancelled,
    ClientClosed,
    InputRequired,
    MCPSyncError,
    MessageTooLarge,
    NotSupported,
    ProtocolError,
    RequestTimeout,
    ResourceNotFound,
    ServerError,
    SkillMismatch,
    StaleError,
    TaskNotFound,
    ToolError,
    TransportError,
    UnsupportedVersion,
    beginning_of,
)
from mcp_sync.results import CallToolResult, TextContent

TRANSPORT: "Dict[str, Any]" = {
    "status": 503,
    "headers": {"Retry-After": "7", "X-Text": "blå"},
    "body_start": "away",
    "may_have_run": False,
    "retry_after": 7.0,
}
SERVER: "Dict[str, Any]" = {"code": -32602, "data": {"uri": ["x", None]}, "status": 400, "retry_after": 1.5}

FAILED = CallToolResult((TextContent("no"),), is_error=True, raw={"isError": True})

MADE: "List[MCPSyncError]" = [
    MCPSyncError("what happened"),
    TransportError("what happened", **TRANSPORT),
    TransportError("what happened"),
    RequestTimeout("what happened", **TRANSPORT),
    AuthorizationError("what happened", challenge='Bearer realm="x"', **TRANSPORT),
    AuthorizationError("what happened", status=401),
    ProtocolError("what happened"),
    UnsupportedVersion("what happened", supported=["2025-11-25", "2026-07-28"]),
    MessageTooLarge("what happened"),
    SkillMismatch("what happened", uri="skill://x/SKILL.md"),
    ServerError("what happened", **SERVER),
    ResourceNotFound("what happened", uri="docs://x", **SERVER),
    InputRequired(
        "what happened",
        method="tools/call",
        params={"name": "x"},
        input_requests={"a": {"method": "elicitation/create"}},
        request_state="opaque",
    ),
    InputRequired("what happened", input_requests={"a": {}}, task={"task_id": "t"}),
    TaskNotFound("what happened", task_id="t", **SERVER),
    Cancelled("what happened"),
    StaleError("what happened", age=12.5),
    ToolError("what happened", result=FAILED),
    NotSupported("what happened"),
    ClientClosed(),
    ClientClosed("what happened"),
]


def kinds(root: "Type[MCPSyncError]") -> "List[Type[MCPSyncError]]":
    found = [root]
    for kind in root.__subclasses__():
        found.extend(kinds(kind))
    return found


def test_every_kind_of_error_is_tried_here_and_public() -> None:
    public = [kind for kind in kinds(MCPSyncError) if kind.__module__ == "mcp_sync.errors"]
    assert {type(error) for error in MADE} == set(public)
    assert {kind.__name__ for kind in public} <= set(errors.__all__) & set(mcp_sync.__all__)


@pytest.mark.parametrize("error", MADE, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_errors_survive_pickling_with_all_that_they_say(error: MCPSyncError, protocol: int) -> None:
    again = pickle.loads(pickle.dumps(error, protocol))
    assert type(again) is type(error)
    assert vars(again) == vars(error)
    assert (str(again), again.args) == (str(error), error.args)


@pytest.mark.parametrize("error", MADE, ids=lambda error: type(error).__name__)
def test_errors_can_be_copied(error: MCPSyncError) -> None:
    for again in (copy.copy(error), copy.deepcopy(error)):
        assert (type(again), vars(again), str(again)) == (type(error), vars(error), str(error))


def fail(number: int) -> None:
    raise MADE[number]


def test_errors_come_out_of_another_process_as_they_went_in() -> None:
    context = multiprocessing.get_context("spawn")
    pool = context.Pool(1)
    try:
        results = [pool.apply_async(fail, (number,)) for number in range(len(MADE))]
        for error, result in zip(MADE, results):
            with pytest.raises(type(error)) as caught:
                result.get(timeout=60)
            assert type(caught.value) is type(error)
            assert vars(caught.value).items() >= vars(error).items()
    finally:
        pool.terminate()
        pool.join()


def test_what_is_caught_by_what() -> None:
    assert issubclass(TransportError, OSError)
    assert issubclass(RequestTimeout, (TransportError, TimeoutError)) and issubclass(RequestTimeout, TimeoutError)
    assert issubclass(AuthorizationError, TransportError)
    assert issubclass(UnsupportedVersion, ProtocolError) and issubclass(MessageTooLarge, ProtocolError)
    assert issubclass(ResourceNotFound, ServerError)
    for kind in (ProtocolError, ServerError, ToolError, InputRequired, StaleError, NotSupported, ClientClosed):
        assert not issubclass(kind, OSError)


def test_the_text_of_an_error_says_what_happened() -> None:
    assert str(TransportError("it broke")) == "it broke"
    assert str(ServerError("no", code=-32601)) == "no (code -32601)"
    assert "closed" in str(ClientClosed())


def test_errors_say_that_the_request_may_have_run_unless_they_know_better() -> None:
    assert TransportError("x").may_have_run and RequestTimeout("x").may_have_run
    assert not AuthorizationError("x").may_have_run


def test_an_error_keeps_no_hold_on_the_headers_it_was_given() -> None:
    headers = {"a": "1"}
    error = TransportError("x", headers=headers)
    headers["a"] = "2"
    assert error.headers == {"a": "1"}


# -- showing what a server sent ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data, shown",
    [
        (b"", ""),
        (b"  two\r\n lines ", "two lines"),
        ("text", "text"),
        (b"caf\xc3\xa9 \xff", "café \ufffd"),
        (None, "null"),
        (True, "true"),
        ({"b": [1, "x"], "a": None}, '{"b": [1, "x"], "a": null}'),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("\u202eabc", "\\u202eabc"),
        ("\ud800", "\\ud800"),
        (b"\x00\x01", "\\x00\\x01"),
        (object(), "<object>"),
        ("世界 😀", "世界 😀"),
    ],
)
def test_the_beginning_is_fit_for_one_line_of_a_log(data: Any, shown: str) -> None:
    assert beginning_of(data) == shown


def test_the_beginning_is_short_whatever_the_size() -> None:
    nest: Any = []
    for _ in range(100000):
        nest = [nest]
    for data in (b"x" * 10**7, "x" * 10**7, ["x" * 10**6] * 100, {str(n): n for n in range(10**5)}, nest, "\x00" * 500):
        shown = beginning_of(data)
        assert len(shown) == 200 and shown.endswith("…"), shown
    assert beginning_of("x" * 200) == "x" * 200
    assert beginning_of("abcdef", 4) == "abc…"
    while nest:  # taken apart by hand: Pythons before 3.9 overflow their stack over the end of such a value
        nest = nest[0]
