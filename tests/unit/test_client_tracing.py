"""Traces of what a client does: a span for each request, and its context in what the server receives."""

from typing import Any, Iterator

import pytest
from serving import KINDS, connected, params_of, serving

from mcp_sync import MCPSyncError, tracing

pytest.importorskip("opentelemetry.sdk")


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> "Iterator[Any]":
    """What was exported, with a provider that only this test knows."""
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


def named(spans: Any, name: str) -> Any:
    (found,) = [span for span in spans() if span.name == name]
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_and_a_read_are_spans_and_the_server_is_told_whose_child_its_own_would_be(kind: str, spans: Any) -> None:
    with serving(kind) as server, connected(server) as client:
        server.add_tool("add", lambda arguments: "3")
        server.add("docs://x", "x")
        client.call_tool("add", {"a": 1})
        client.read_resource("docs://x")
        version = client.protocol_version
        for name, method in (("tools/call add", "tools/call"), ("resources/read", "resources/read")):
            span = named(spans, name)
            (params,) = params_of(server, method)
            trace_id, span_id = params["_meta"]["traceparent"].split("-")[1:3]
            assert (int(trace_id, 16), int(span_id, 16)) == (span.context.trace_id, span.context.span_id)
            assert span.attributes["mcp.protocol.version"] == version
            assert span.attributes["network.transport"] == ("pipe" if kind.endswith("stdio") else "tcp")
            assert ("mcp.session.id" in span.attributes) is (kind == "legacy http")


def test_a_failed_call_is_a_failed_span(spans: Any) -> None:
    with serving("modern http") as server, connected(server) as client:
        server.add_tool("add", lambda arguments: {"content": [], "isError": True})
        client.call_tool("add")
        with pytest.raises(MCPSyncError):
            client.call_tool("subtract")
    assert named(spans, "tools/call add").attributes["error.type"] == "tool_error"
    failed = named(spans, "tools/call subtract").attributes
    assert failed["error.type"] == failed["rpc.response.status_code"] == "-32602"
    assert failed["mcp.protocol.version"] == "2026-07-28"


def test_a_trace_that_the_program_sends_itself_is_left_as_it_is(spans: Any) -> None:
    with serving("modern http") as server, connected(server) as client:
        server.add_tool("add", lambda arguments: "3")
        client.call_tool("add", meta={"traceparent": "mine"})
        (params,) = params_of(server, "tools/call")
    assert params["_meta"]["traceparent"] == "mine"


def test_each_question_about_a_task_is_a_span_of_its_own(spans: Any) -> None:
    with serving("modern http") as server, connected(server) as client:
        server.add_tool("train", lambda arguments: "trained", task=True)
        client.call_tool("train")
        polls = params_of(server, "tasks/get")
    assert len([span for span in spans() if span.name == "tasks/get"]) == len(polls) > 0
    assert all("traceparent" in params["_meta"] for params in polls)
