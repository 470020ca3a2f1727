"""Trace context: what a request's span says, what goes into ``_meta``, and that a program without OpenTelemetry pays nothing."""

import subprocess
import sys
from typing import Any, Iterator

import pytest

from mcp_sync import InputRequired, ProtocolError, RequestTimeout, ServerError, TransportError, tracing

URL = "https://docs.example.com/mcp"


def run(code: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


# -- without OpenTelemetry ------------------------------------------------------------------------------------------------


def test_a_program_that_does_not_use_opentelemetry_imports_nothing_of_it_even_where_it_is_installed() -> None:
    said = run(
        "import sys, mcp_sync\n"
        "from mcp_sync import tracing\n"
        "with tracing.span('tools/call', {'name': 'add'}, 'http://x/mcp') as additions:\n"
        "    print(dict(additions))\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    assert said.splitlines() == ["{}", "[]"]


def test_a_program_without_opentelemetry_sees_no_difference() -> None:
    said = run(
        "import sys\n"
        "sys.modules['opentelemetry'] = None\n"  # its import fails
        "from mcp_sync import tracing\n"
        "span = tracing.span('tools/call', {'name': 'add'}, 'http://x/mcp')\n"
        "with span as additions:\n"
        "    span.spoken('2026-07-28')\n"
        "    span.answered({'isError': True})\n"
        "    print(dict(additions))"
    )
    assert said == "{}"


def test_an_opentelemetry_that_cannot_be_used_is_told_once_and_does_no_harm() -> None:
    said = run(
        "import logging, sys, types\n"
        "logging.basicConfig(stream=sys.stdout, format='%(message)s')\n"
        "sys.modules['opentelemetry'] = types.ModuleType('opentelemetry')\n"
        "sys.modules['opentelemetry.context'] = types.ModuleType('opentelemetry.context')\n"
        "from mcp_sync import tracing\n"
        "for _ in range(2):\n"
        "    with tracing.span('tools/call', {'name': 'add'}, 'http://x/mcp') as additions:\n"
        "        print(dict(additions))"
    )
    told, first, second = said.splitlines()
    assert told.startswith("requests are not traced: OpenTelemetry cannot be used (")
    assert (first, second) == ("{}", "{}")


# -- with it --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> "Iterator[Any]":
    """What was exported, with a provider that only this test knows."""
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    api = tracing._opentelemetry()
    assert api is not None
    monkeypatch.setattr(tracing, "_found", tracing._API(api.trace, api.context, api.propagate, provider.get_tracer("mcp_sync")))
    yield exporter.get_finished_spans
    provider.shutdown()


def traced(method: str = "tools/call", where: str = URL, **params: Any) -> "tracing.Span":
    return tracing.span(method, params, where)


def test_a_call_of_a_tool_is_a_client_span_with_the_names_of_the_conventions(spans: Any) -> None:
    span = traced(name="add", arguments={"secret": "x"})
    with span:
        span.spoken("2026-07-28", None, 7)
        span.answered({"content": []})
    (told,) = spans()
    assert told.name == "tools/call add"
    assert told.kind.name == "CLIENT"
    assert told.status.status_code.name == "UNSET"
    assert dict(told.attributes) == {
        "mcp.method.name": "tools/call",
        "gen_ai.tool.name": "add",
        "gen_ai.operation.name": "execute_tool",
        "mcp.protocol.version": "2026-07-28",
        "jsonrpc.request.id": "7",
        "network.transport": "tcp",
        "network.protocol.name": "http",
        "server.address": "docs.example.com",
        "server.port": 443,
    }


@pytest.mark.parametrize(
    "method, params, name, attribute",
    [
        ("prompts/get", {"name": "greet"}, "prompts/get greet", ("gen_ai.prompt.name", "greet")),
        # A name for each resource would be too many.
        ("resources/read", {"uri": "docs://x"}, "resources/read", ("mcp.resource.uri", "docs://x")),
        ("tools/list", {}, "tools/list", ("mcp.method.name", "tools/list")),
        ("tools/call", {"name": 7}, "tools/call", ("gen_ai.operation.name", "execute_tool")),
    ],
)
def test_the_span_is_named_after_the_method_and_what_it_is_about(
    spans: Any, method: str, params: Any, name: str, attribute: Any
) -> None:
    with tracing.span(method, params, URL):
        pass
    (told,) = spans()
    assert told.name == name
    assert told.attributes[attribute[0]] == attribute[1]


@pytest.mark.parametrize(
    "where, expected",
    [
        ("http://127.0.0.1:8000/mcp", ("tcp", "127.0.0.1", 8000)),
        ("HTTP://user:secret@[::1]/mcp", ("tcp", "::1", 80)),
        ("python server.py", ("pipe", None, None)),
    ],
)
def test_the_span_says_where_the_server_is(spans: Any, where: str, expected: Any) -> None:
    with traced(where=where, name="add"):
        pass
    attributes = spans()[0].attributes
    assert tuple(map(attributes.get, ("network.transport", "server.address", "server.port"))) == expected
    assert "secret" not in repr(dict(attributes))


def test_a_session_of_an_older_revision_is_named(spans: Any) -> None:
    span = traced(name="add")
    with span:
        span.spoken("2025-06-18", "s-1")
    assert spans()[0].attributes["mcp.session.id"] == "s-1"


@pytest.mark.parametrize(
    "error, error_type, description",
    [
        (ServerError("no such tool", code=-32602), "-32602", "no such tool"),
        (RequestTimeout("too late"), "timeout", "too late"),
        (TransportError("unavailable", status=503), "503", "unavailable"),
        (TransportError("reset"), "TransportError", "reset"),
        (ProtocolError("nonsense"), "ProtocolError", "nonsense"),
        (KeyboardInterrupt(), "KeyboardInterrupt", None),
    ],
)
def test_an_error_is_told_by_a_word_for_its_kind(spans: Any, error: BaseException, error_type: str, description: Any) -> None:
    with pytest.raises(type(error)):
        with traced(name="add"):
            raise error
    (told,) = spans()
    assert told.attributes["error.type"] == error_type
    assert (told.status.status_code.name, told.status.description) == ("ERROR", description)
    code = str(error.code) if isinstance(error, ServerError) else None
    assert told.attributes.get("rpc.response.status_code") == code


def test_an_error_of_the_tool_is_an_error_of_the_span(spans: Any) -> None:
    span = traced(name="add")
    with span:
        span.answered({"isError": True})
    (told,) = spans()
    assert (told.attributes["error.type"], told.status.status_code.name) == ("tool_error", "ERROR")


def test_a_question_of_the_server_is_no_error(spans: Any) -> None:
    with pytest.raises(InputRequired):
        with traced(name="add"):
            raise InputRequired("who are you?")
    (told,) = spans()
    assert ("error.type" in told.attributes, told.status.status_code.name) == (False, "UNSET")


def test_the_trace_and_its_baggage_go_along_and_the_span_is_the_parent_of_what_happens_in_it(spans: Any) -> None:
    from opentelemetry import baggage, context, trace

    token = context.attach(baggage.set_baggage("tenant", "acme"))
    try:
        with traced(name="add") as additions:
            inner = trace.get_current_span().get_span_context()
    finally:
        context.detach(token)
    (told,) = spans()
    assert (inner.trace_id, inner.span_id) == (told.context.trace_id, told.context.span_id)
    assert dict(additions) == {
        "traceparent": "00-%032x-%016x-%02x" % (inner.trace_id, inner.span_id, inner.trace_flags),
        "baggage": "tenant=acme",
    }
    assert not trace.get_current_span().get_span_context().is_valid  # afterwards the span is the current one no more


def test_the_state_of_a_trace_from_elsewhere_goes_along(spans: Any) -> None:
    from opentelemetry import context, propagate

    parent = {"traceparent": "00-%s-%s-01" % ("a" * 32, "b" * 16), "tracestate": "vendor=x"}
    token = context.attach(propagate.extract(parent))
    try:
        with traced(name="add") as additions:
            pass
    finally:
        context.detach(token)
    assert additions["traceparent"].split("-")[1] == "a" * 32
    assert additions["tracestate"] == "vendor=x"


def test_without_a_provider_the_trace_that_a_program_took_over_goes_along_all_the_same() -> None:
    pytest.importorskip("opentelemetry.sdk")
    said = run(
        "from opentelemetry import context, propagate\n"
        "from mcp_sync import tracing\n"
        "context.attach(propagate.extract({'traceparent': '00-%s-%s-01' % ('a' * 32, 'b' * 16)}))\n"
        "with tracing.span('tools/list', {}, 'http://x/mcp') as additions:\n"
        "    print(additions['traceparent'])"
    )
    assert said == "00-%s-%s-01" % ("a" * 32, "b" * 16)


def test_what_breaks_in_the_tracing_does_not_break_the_request(
    spans: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def start_span(self, *args: Any, **options: Any) -> Any:
            raise ZeroDivisionError

    api = tracing._opentelemetry()
    assert api is not None
    monkeypatch.setattr(tracing, "_found", tracing._API(api.trace, api.context, api.propagate, Broken()))
    span = traced(name="add")
    with span as additions:
        span.spoken("2026-07-28")
        span.answered({"isError": True})
    assert dict(additions) == {}
    assert "tracing tools/call failed" in caplog.text
