"""Trace context: requests as spans of OpenTelemetry, and the trace that they belong to sent along in ``_meta``.

Nothing has to be switched on. In a program that uses OpenTelemetry (``pip install "mcp-sync-client[tracing]"`` brings its API),
each request is a CLIENT span with the names of OpenTelemetry's semantic conventions for MCP, current while the request runs.
What the configured propagators write (``traceparent``, ``tracestate`` and ``baggage``, unless the program chose others) goes into
the request's ``_meta``. See the specification, basic: ``_meta``, OpenTelemetry trace context.

This file never is the first to import OpenTelemetry. A program that has not imported it has no provider, no span and no baggage,
so that there would be nothing to record and nothing to send; and looking whether it has costs one look into a dictionary.
"""

from __future__ import annotations

import logging
import sys
from types import MappingProxyType
from typing import Any, Dict, Mapping, Optional
from urllib.parse import urlsplit

from . import _fork
from ._version import __version__
from .errors import InputRequired, RequestTimeout, ServerError, TransportError

__all__ = ["Span", "span"]

_log = logging.getLogger("mcp_sync")

#: What begins a span or sets baggage stands on this module.
_SIGN = "opentelemetry.context"

_NOTHING: Mapping[str, str] = MappingProxyType({})

# Which parameter says what a request is about, and the attribute for it. Only the first two go into the span's name, which
# must not be another for each resource.
_TARGETS = {"tools/call": ("name", "gen_ai.tool.name"), "prompts/get": ("name", "gen_ai.prompt.name")}
_ABOUT = {
    "resources/read": ("uri", "mcp.resource.uri"),
    "resources/subscribe": ("uri", "mcp.resource.uri"),
    "resources/unsubscribe": ("uri", "mcp.resource.uri"),
    **_TARGETS,
}


class Span:
    """One request, as far as a trace is concerned. This one is in no trace, and does nothing.

    A context manager around the request, which gives what belongs into its ``_meta``. One thread.
    """

    __slots__ = ()

    def __enter__(self) -> Mapping[str, str]:
        return _NOTHING

    def __exit__(self, *exc_info: Any) -> None:
        pass

    def spoken(self, version: str, session_id: Optional[str] = None, request_id: Any = None) -> None:
        """Note what was only known when the request was sent.

        :param version: the protocol revision.
        :param session_id: the legacy session, or None.
        :param request_id: the JSON-RPC id, or None. The last one counts.
        """

    def answered(self, result: Mapping[str, Any]) -> None:
        """Note the result: one with ``isError`` is an error of the tool's."""


_UNTRACED = Span()


def span(method: str, params: Mapping[str, Any], where: str) -> Span:
    """Return the span of one request, not begun yet.

    ::

        with tracing.span(method, params, where) as additions:
            ...  # send it with additions in params._meta

    :param method: what is asked.
    :param params: its parameters.
    :param where: the server's URL, or the command that runs it.
    """
    if _SIGN not in sys.modules:
        return _UNTRACED
    api = _opentelemetry()
    return _UNTRACED if api is None else _TracedSpan(api, method, params, where)


class _API:
    __slots__ = ("trace", "context", "propagate", "tracer")

    def __init__(self, trace: Any, context: Any, propagate: Any, tracer: Any) -> None:
        self.trace = trace
        self.context = context
        self.propagate = propagate
        self.tracer = tracer


_found: Optional[_API] = None
_unusable = False


def _opentelemetry() -> Optional[_API]:
    global _found, _unusable
    if _found is None and not _unusable:
        try:
            with _fork.held_off():
                import opentelemetry.context as context
                import opentelemetry.propagate as propagate
                import opentelemetry.trace as trace

            # A tracer that is got before the program has set its provider becomes that provider's later.
            _found = _API(trace, context, propagate, trace.get_tracer("mcp_sync", __version__))
        except Exception as error:
            # The boundary to a library that runs what the program has configured while it is loaded.
            _unusable = True
            _log.warning("requests are not traced: OpenTelemetry cannot be used (%s: %s)", type(error).__name__, error)
    return _found


class _TracedSpan(Span):
    """A request in a program that traces. One thread.

    Whatever goes wrong in the tracing (in a sampler, say, or a processor) is logged; the request goes on without.
    """

    __slots__ = ("_api", "_method", "_params", "_where", "_span", "_token")

    def __init__(self, api: _API, method: str, params: Mapping[str, Any], where: str) -> None:
        self._api = api
        self._method = method
        self._params = params
        self._where = where
        self._span: Any = None
        self._token: Any = None

    def __enter__(self) -> Mapping[str, str]:
        api = self._api
        carrier: Dict[str, str] = {}
        try:
            self._span = api.tracer.start_span(
                self._name(), kind=api.trace.SpanKind.CLIENT, attributes=self._attributes()
            )
            # Without a provider, older APIs give a span of no trace; the one that the program is in must not be hidden by it.
            if self._span.get_span_context().is_valid:
                self._token = api.context.attach(api.trace.set_span_in_context(self._span))
            api.propagate.inject(carrier)
        except Exception:
            # The boundary to the program's exporters and samplers: a request is made whether it is traced or not.
            _log.warning("tracing %s failed", self._method, exc_info=True)
        return carrier

    def __exit__(self, *exc_info: Any) -> None:
        try:
            if self._token is not None:
                self._api.context.detach(self._token)
            if self._span is not None:
                if exc_info and exc_info[1] is not None:
                    self._failed(exc_info[1])
                self._span.end()
        except Exception:
            # The boundary to the program's exporters and samplers: a request is made whether it is traced or not.
            _log.warning("tracing %s failed", self._method, exc_info=True)

    def spoken(self, version: str, session_id: Optional[str] = None, request_id: Any = None) -> None:
        attributes = {"mcp.protocol.version": version}
        if session_id is not None:
            attributes["mcp.session.id"] = session_id
        if request_id is not None:
            attributes["jsonrpc.request.id"] = str(request_id)
        self._set(attributes)

    def answered(self, result: Mapping[str, Any]) -> None:
        if self._method == "tools/call" and result.get("isError") is True:
            self._set({"error.type": "tool_error"}, "")

    def _name(self) -> str:
        field, _ = _TARGETS.get(self._method, ("", ""))
        target = self._params.get(field)
        return "%s %s" % (self._method, target) if isinstance(target, str) else self._method

    def _attributes(self) -> Dict[str, Any]:
        attributes: Dict[str, Any] = {"mcp.method.name": self._method}
        field, attribute = _ABOUT.get(self._method, ("", ""))
        if isinstance(self._params.get(field), str):
            attributes[attribute] = self._params[field]
        if self._method == "tools/call":
            attributes["gen_ai.operation.name"] = "execute_tool"
        if not self._where.lower().startswith(("http://", "https://")):
            attributes["network.transport"] = "pipe"
            return attributes
        attributes["network.transport"] = "tcp"
        attributes["network.protocol.name"] = "http"
        url = urlsplit(self._where)
        if url.hostname:
            attributes["server.address"] = url.hostname
            attributes["server.port"] = url.port or (443 if url.scheme == "https" else 80)
        return attributes

    def _failed(self, error: BaseException) -> None:
        # A question is an answer, too.
        if not isinstance(error, InputRequired):
            attributes = {"error.type": _error_type(error)}
            if isinstance(error, ServerError):
                attributes["rpc.response.status_code"] = str(error.code)
            self._set(attributes, error.message if isinstance(error, ServerError) else str(error))

    def _set(self, attributes: Dict[str, Any], failure: Optional[str] = None) -> None:
        try:
            if self._span is not None:
                self._span.set_attributes(attributes)
                if failure is not None:
                    trace = self._api.trace
                    self._span.set_status(trace.Status(trace.StatusCode.ERROR, failure or None))
        except Exception:
            # The boundary to the program's exporters and samplers: a request is made whether it is traced or not.
            _log.warning("tracing %s failed", self._method, exc_info=True)


def _error_type(error: BaseException) -> str:
    """Return a word for a kind of error, of which there are few."""
    if isinstance(error, ServerError):
        return str(error.code)
    if isinstance(error, RequestTimeout):
        return "timeout"
    if isinstance(error, TransportError) and error.status is not None:
        return str(error.status)
    return type(error).__qualname__
