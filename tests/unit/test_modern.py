"""The modern era: what is asked, and what the answers and notices mean."""

import base64
from typing import Any, Dict, List, Optional

import pytest

from mcp_sync.eras.base import Ended
from mcp_sync.eras.modern import Modern, header_value
from mcp_sync.errors import (
    InputRequired,
    MCPSyncError,
    ProtocolError,
    ResourceNotFound,
    ServerError,
    UnsupportedVersion,
)
from mcp_sync.jsonrpc import Notification, Request, Response, parse
from mcp_sync.notices import (
    Acknowledged,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    SubscriptionFilter,
    ToolsListChanged,
)
from mcp_sync.transports.base import Exchange

PREFIX = "io.modelcontextprotocol/"
ERA = Modern({"name": "n", "version": "1"}, {"sampling": {}})
ID = (9 << 32) + 1

# -- header values (basic/transports/streamable-http: Value Encoding) --------------------------------------------------


@pytest.mark.parametrize(
    "value, encoded",
    [
        # The protocol's own table.
        ("us-west1", "us-west1"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        # And its neighbours.
        ("file:///projects/myapp/config.json", "file:///projects/myapp/config.json"),
        ("a b", "a b"),
        ("a\tb", "a\tb"),
        ("~!@#$%^&*()", "~!@#$%^&*()"),
        ("x", "x"),
        ("=?BASE64?literal?=", "=?BASE64?literal?="),
        ("=?base64?literal", "=?base64?literal"),
        ("literal?=", "literal?="),
        ("=?base64?x?= ", "=?base64?PT9iYXNlNjQ/eD89IA==?="),
        ("=?base64??=", "=?base64?PT9iYXNlNjQ/Pz0=?="),
        ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
        (" leading", "=?base64?IGxlYWRpbmc=?="),
        ("trailing\t", "=?base64?dHJhaWxpbmcJ?="),
        ("docs://h/世界", "=?base64?ZG9jczovL2gv5LiW55WM?="),
        ("a\r\nX-Evil: 1", "=?base64?YQ0KWC1FdmlsOiAx?="),
        ("a\x00b", "=?base64?YQBi?="),
        ("a\x7fb", "=?base64?YX9i?="),
        ("caf\u00e9", "=?base64?Y2Fmw6k=?="),
        ("a\u2028b", "=?base64?YeKAqGI=?="),
        ("", "=?base64??="),
        (" ", "=?base64?IA==?="),
    ],
)
def test_a_name_is_encoded_as_the_protocol_s_table_says(value: str, encoded: str) -> None:
    assert header_value(value) == encoded
    assert all(" " <= char <= "~" or char == "\t" for char in encoded)
    if encoded != value:
        assert base64.b64decode(encoded[len("=?base64?") : -len("?=")]).decode("utf-8") == value


def test_a_name_that_utf_8_cannot_hold_is_encoded_all_the_same() -> None:
    assert header_value("x\ud800") == "=?base64?eO2ggA==?="


# -- asking ------------------------------------------------------------------------------------------------------------


def test_a_request_carries_its_metadata_in_the_body_and_in_headers() -> None:
    outgoing = ERA.request(ID, "resources/read", {"uri": "docs://h/世界"})
    assert outgoing.message == {
        "jsonrpc": "2.0",
        "id": ID,
        "method": "resources/read",
        "params": {
            "uri": "docs://h/世界",
            "_meta": {
                PREFIX + "protocolVersion": "2026-07-28",
                PREFIX + "clientInfo": {"name": "n", "version": "1"},
                PREFIX + "clientCapabilities": {"sampling": {}},
            },
        },
    }
    assert outgoing.headers == {
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "resources/read",
        "Mcp-Name": "=?base64?ZG9jczovL2gv5LiW55WM?=",
    }
    assert (outgoing.repeatable, outgoing.streaming) == (True, False)


@pytest.mark.parametrize(
    "method, params, name",
    [
        ("resources/read", {"uri": "u", "name": "n"}, "u"),
        ("tools/call", {"uri": "u", "name": "n"}, "n"),
        ("prompts/get", {"uri": "u", "name": "n"}, "n"),
        ("resources/list", {"uri": "u", "name": "n"}, None),
        ("server/discover", {}, None),
        ("tools/call", {}, None),
        ("tools/call", {"name": 7}, None),
    ],
)
def test_the_three_methods_that_have_a_name_repeat_it(method: str, params: Any, name: Optional[str]) -> None:
    assert ERA.request(ID, method, params).headers.get("Mcp-Name") == name


@pytest.mark.parametrize(
    "method, repeatable",
    [
        ("resources/read", True),
        ("resources/list", True),
        ("resources/templates/list", True),
        ("server/discover", True),
        ("tools/list", True),
        ("subscriptions/listen", True),
        ("tools/call", False),
        ("tasks/cancel", False),
        ("vendor/unknown", False),
    ],
)
def test_only_what_changes_nothing_may_be_sent_twice(method: str, repeatable: bool) -> None:
    assert ERA.request(ID, method, {}).repeatable is repeatable


def test_other_metadata_is_kept_and_the_era_s_own_cannot_be_replaced() -> None:
    given = {"progressToken": 1, PREFIX + "protocolVersion": "1900-01-01"}
    meta = ERA.request(ID, "tools/list", {"_meta": given}).message["params"]["_meta"]
    assert (meta["progressToken"], meta[PREFIX + "protocolVersion"]) == (1, "2026-07-28")
    assert given[PREFIX + "protocolVersion"] == "1900-01-01"


def test_listening_is_asked_for_with_a_filter() -> None:
    outgoing = ERA.listen(ID, SubscriptionFilter(frozenset(["b", "a"]), resources_list_changed=True))
    assert outgoing.message["params"]["notifications"] == {
        "resourcesListChanged": True,
        "resourceSubscriptions": ["a", "b"],
    }
    assert (outgoing.streaming, outgoing.headers["Mcp-Method"]) == (True, "subscriptions/listen")


# -- answers -----------------------------------------------------------------------------------------------------------


class Answered(Exchange):
    """An exchange of which only the status matters."""

    status = 400
    retry_after = 3.0

    def __next__(self) -> Any:
        raise StopIteration

    def interrupt(self) -> None:
        pass

    def close(self) -> None:
        pass

    def limit(self, *_: Any, **__: Any) -> None:
        pass


def result(response: Any, method: str = "resources/read") -> Any:
    outgoing = ERA.request(ID, method, {"uri": "docs://x"})
    return ERA.result(outgoing, response, Answered())


def refused(error: Any, method: str = "resources/read") -> MCPSyncError:
    with pytest.raises(MCPSyncError) as caught:
        result(Response(ID, None, error), method)
    return caught.value


@pytest.mark.parametrize("raw", [{"resultType": "complete", "a": 1}, {"a": 1}, {}])
def test_a_complete_result_and_one_that_does_not_say_are_complete(raw: "Dict[str, Any]") -> None:
    assert result(Response(ID, raw, None)) is raw


@pytest.mark.parametrize("kind", ["partial", "", "Complete", None, 7, True, ["complete"], {}])
def test_a_result_of_an_unknown_type_is_invalid(kind: Any) -> None:
    with pytest.raises(ProtocolError, match="of a type that nobody asked for"):
        result(Response(ID, {"resultType": kind}, None))


@pytest.mark.parametrize("raw", [None, [], "text", 7, True])
def test_a_result_that_is_no_object_is_invalid(raw: Any) -> None:
    with pytest.raises(ProtocolError, match="no object"):
        result(Response(ID, raw, None))


def test_a_server_that_asks_for_input_says_what_for() -> None:
    asked = {"a": {"method": "elicitation/create"}}
    raw = {"resultType": "input_required", "inputRequests": asked, "requestState": "s"}
    with pytest.raises(InputRequired) as caught:
        result(Response(ID, raw, None))
    assert caught.value.input_requests == {"a": {"method": "elicitation/create"}}
    assert caught.value.request_state == "s"
    with pytest.raises(InputRequired) as caught:
        result(Response(ID, {"resultType": "input_required", "inputRequests": [], "requestState": 7}, None))
    assert (caught.value.input_requests, caught.value.request_state) == ({}, None)


@pytest.mark.parametrize(
    "error",
    [
        {"code": -32602, "message": "Resource not found"},
        {"code": -32602, "message": "Invalid params"},
        {"code": -32002, "message": "whatever"},
        {"code": -32001, "message": "Resource not found: docs://x"},
        {"code": 0, "message": "Unknown resource: docs://x"},
        {"code": 0, "message": "the file DOES NOT EXIST"},
        {"code": "-32602", "message": "as text"},
        {"code": -32602.0, "message": "as a float"},
        {"message": "no such resource"},
    ],
)
def test_a_missing_resource_is_one_exception_whatever_its_code(error: Any) -> None:
    caught = refused(dict(error, data={"uri": "docs://x"}))
    assert type(caught) is ResourceNotFound
    assert (caught.uri, caught.data) == ("docs://x", {"uri": "docs://x"})  # type: ignore[attr-defined]
    assert (caught.status, caught.retry_after) == (400, 3.0)  # type: ignore[attr-defined]
    assert error["message"] in str(caught) and "docs://x" in str(caught)


@pytest.mark.parametrize(
    "error, code",
    [
        ({"code": -32603, "message": "Internal error"}, -32603),
        ({"code": -32601, "message": "Method not found"}, -32601),
        ({"code": -32020, "message": "Header mismatch"}, -32020),
        ({"code": -32001, "message": "Request timed out"}, -32001),
        ({"code": 0, "message": "x"}, 0),
        ({"code": True, "message": "x"}, 0),
        ({"code": None, "message": "x"}, 0),
        ({"code": 1.5, "message": "x"}, 0),
        ({"code": float("nan"), "message": "x"}, 0),
        ({"code": "ENOENT", "message": "x"}, 0),
        ({"code": "9" * 5000, "message": "x"}, 0),
        ({"code": [], "message": "x"}, 0),
        ({}, 0),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_other_errors_are_the_server_s_own(error: Any, code: int) -> None:
    caught = refused(error)
    assert type(caught) is ServerError
    assert caught.code == code  # type: ignore[attr-defined]
    assert str(caught)


@pytest.mark.parametrize("message", [None, "", "  ", 7, [], {}])
def test_an_error_without_a_message_is_shown_as_it_came(message: Any) -> None:
    assert "the server answered with an error: " in str(refused({"code": -32603, "message": message}))


def test_invalid_parameters_of_another_method_are_no_missing_resource() -> None:
    assert type(refused({"code": -32602, "message": "not found"}, "resources/list")) is ServerError


@pytest.mark.parametrize("code", [-32022, -32022.0, "-32022"])
@pytest.mark.parametrize(
    "data, supported",
    [
        ({"supported": ["2026-07-28", "2025-11-25"], "requested": "x"}, ("2026-07-28", "2025-11-25")),
        ({"supported": ["a", 7, None]}, ("a",)),
        ({"supported": "2026-07-28"}, ()),
        ({}, ()),
        (None, ()),
        ("text", ()),
        ([], ()),
    ],
)
def test_a_refused_version_names_those_that_the_server_speaks(code: Any, data: Any, supported: Any) -> None:
    caught = refused({"code": code, "message": "Unsupported protocol version", "data": data})
    assert type(caught) is UnsupportedVersion
    assert caught.supported == supported  # type: ignore[attr-defined]


# -- notices -----------------------------------------------------------------------------------------------------------


def notice(method: str, params: Any = None, subscription: Any = ID) -> Any:
    whole = dict(params or {}, _meta={PREFIX + "subscriptionId": subscription})
    return ERA.notice(ID, Notification(method, whole))


def test_each_notice_is_typed() -> None:
    assert notice("notifications/resources/updated", {"uri": "docs://x"}) == ResourceUpdated("docs://x")
    assert notice("notifications/resources/list_changed") == ResourcesListChanged()
    assert notice("notifications/tools/list_changed") == ToolsListChanged()
    assert notice("notifications/prompts/list_changed") == PromptsListChanged()
    assert notice(
        "notifications/subscriptions/acknowledged",
        {"notifications": {"resourceSubscriptions": ["a"], "resourcesListChanged": True}},
    ) == Acknowledged(SubscriptionFilter(frozenset(["a"]), resources_list_changed=True))


@pytest.mark.parametrize("subscription", [ID, str(ID), float(ID), None, 0])
def test_a_notice_without_or_with_a_mangled_subscription_is_ours(subscription: Any) -> None:
    assert notice("notifications/tools/list_changed", {}, subscription) == ToolsListChanged()
    assert ERA.notice(ID, Notification("notifications/tools/list_changed", {})) == ToolsListChanged()
    assert ERA.notice(ID, Notification("notifications/tools/list_changed", {"_meta": "x"})) == ToolsListChanged()


@pytest.mark.parametrize("subscription", [ID + 1, 1, "1", "another", True, [], {}])
def test_a_notice_of_another_subscription_is_ignored(subscription: Any) -> None:
    assert notice("notifications/tools/list_changed", {}, subscription) is None
    assert notice("notifications/resources/updated", {"uri": "x"}, subscription) is None


@pytest.mark.parametrize(
    "message",
    [
        {"method": "notifications/message", "params": {"level": "info"}},
        {"method": "notifications/unheard/of"},
        {"method": ""},
        {"method": "sampling/createMessage", "id": 0},
        {"method": "ping", "id": "x"},
        {"id": ID + 1, "result": {}},
        {"id": "another", "error": {"code": 1}},
    ],
)
def test_what_is_none_of_ours_is_ignored(message: "Dict[str, Any]") -> None:
    parsed = parse(message)
    assert isinstance(parsed, (Notification, Request, Response))
    assert ERA.notice(ID, parsed) is None


@pytest.mark.parametrize("params", [{}, {"uri": None}, {"uri": 7}, {"uri": ["docs://x"]}])
def test_an_update_without_a_uri_may_be_about_anything_and_is_refused(params: Any) -> None:
    with pytest.raises(ProtocolError, match="an update without a URI"):
        notice("notifications/resources/updated", params)


NOTHING: "List[Any]" = [None, [], "text", {}, {"resourceSubscriptions": "docs://x"}, {"resourcesListChanged": "true"}]


@pytest.mark.parametrize("granted", NOTHING + [{"resourceSubscriptions": [7, None]}, {"resourcesListChanged": 1}])
def test_what_is_not_clearly_granted_is_not_granted(granted: Any) -> None:
    said = notice("notifications/subscriptions/acknowledged", {"notifications": granted})
    assert said == Acknowledged(SubscriptionFilter())


@pytest.mark.parametrize("answer_id", [ID, str(ID), None, 0])
def test_the_stream_s_own_endings_are_told_apart(answer_id: Any) -> None:
    ended = ERA.notice(ID, Response(answer_id, {"resultType": "complete"}, None))
    assert isinstance(ended, Ended) and (ended.how, ended.error) == ("result", None)
    ended = ERA.notice(ID, Response(answer_id, None, {"code": -32603, "message": "m", "data": 1}))
    assert isinstance(ended, Ended) and ended.how == "error"
    assert ended.error is not None and (ended.error.code, ended.error.data) == (-32603, 1)
    ended = notice("notifications/cancelled", {"requestId": answer_id})
    assert isinstance(ended, Ended) and (ended.how, ended.error) == ("cancelled", None)


def test_a_cancellation_of_another_request_is_ignored() -> None:
    assert notice("notifications/cancelled", {"requestId": ID + 1}) is None
    assert notice("notifications/cancelled", {"requestId": "x"}) is None
