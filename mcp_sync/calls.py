"""One request to its end: input that the server asks for is given, in as many rounds as it takes.

See the specification, basic/patterns/mrtr.
"""

from typing import Any, Dict, Optional

from ._backoff import Backoff
from ._deadline import Deadline
from .calling import Attempt, CallOptions, pause
from .connection import Connection
from .errors import InputRequired, MCPSyncError, ProtocolError, Raised
from .inputs import Inputs

__all__ = ["Calls", "limit_of"]


class Calls:
    """Makes the requests of one client that are not reads through its cache. Any thread.

    :param connection: where.
    :param inputs: who answers what the server asks for.
    :param max_rounds: how often it may ask before it answers one request.
    """

    def __init__(self, connection: Connection, inputs: Inputs, max_rounds: int) -> None:
        self.connection = connection
        self._inputs = inputs
        self._max_rounds = max_rounds

    def request(
        self, method: str, params: Dict[str, Any], options: CallOptions, limit: Optional[Deadline] = None
    ) -> Dict[str, Any]:
        """Make one request.

        :param limit: for all of it, if that began before; otherwise ``max_timeout`` from now on.
        :returns: the ``result``, as the server sent it.
        :raises Raised: with what a function of the user's raised.
        :raises InputRequired: if it asks for what nobody here can give, or never stops to ask.
        :raises Cancelled: if it was cancelled.
        :raises RequestTimeout: if the answer did not come in time.
        :raises MCPSyncError: whatever else went wrong (see :mod:`mcp_sync.errors`).
        """
        return self._rounds(method, params, options, limit or limit_of(method, params, options), None)

    def go_on(self, asked: InputRequired, params: Dict[str, Any], options: CallOptions) -> Dict[str, Any]:
        """As :meth:`request`, where the first try was made elsewhere and brought ``asked``."""
        asked.params = dict(params)
        return self._rounds(asked.method, params, options, limit_of(asked.method, params, options), asked)

    def _rounds(
        self, method: str, params: Dict[str, Any], options: CallOptions, limit: Deadline, asked: Optional[InputRequired]
    ) -> Dict[str, Any]:
        responses, state = options.input_responses, options.request_state
        pauses = Backoff(0.5, 5.0)
        for _ in range(self._max_rounds + 1):
            if asked is not None:
                responses, state = self._answers(asked, options, limit, pauses)
            whole = dict(params)
            if responses:
                whole["inputResponses"] = dict(responses)
            if state is not None:
                whole["requestState"] = state
            try:
                return self._once(method, whole, options, limit)
            except InputRequired as required:
                required.params = dict(params)
                asked = required
        raise InputRequired(
            "the server asked for input %d times before it answered %s; that is the limit (input_required_max_rounds=)"
            % (self._max_rounds + 1, method),
            method=method,
            params=params,
            input_requests=asked.input_requests if asked is not None else {},
            request_state=asked.request_state if asked is not None else None,
        )

    def _answers(self, asked: InputRequired, options: CallOptions, limit: Deadline, pauses: Backoff) -> Any:
        """Return what to make the request with again: the answers, and the state."""
        if not asked.input_requests:
            if asked.request_state is None:
                raise ProtocolError("the server asks for input before it answers %s, and does not say for what" % asked.method)
            # It only wants to be asked again; but not in a circle without a pause.
            wait = limit.shorter(pauses.next())
            pause(wait, options.cancellation, lambda: self.connection.closed)
        try:
            responses = self._inputs.answer(asked)
        except Exception as error:
            if error is asked:
                raise
            # The boundary to a user's code, likewise.
            raise Raised(error) from error
        if options.cancellation is not None:
            options.cancellation.raise_if_cancelled(limit.what)
        if limit.expired:
            raise limit.error(may_have_run=False)
        return responses, asked.request_state

    def _once(self, method: str, params: Dict[str, Any], options: CallOptions, limit: Deadline) -> Dict[str, Any]:
        cancellation = options.cancellation
        if cancellation is not None:
            cancellation.raise_if_cancelled(limit.what)
        attempt = Attempt(options, limit)
        try:
            return self.connection.call(method, params, deadline=attempt.deadline, attempt=attempt)
        except InputRequired:
            raise
        except MCPSyncError as error:
            if cancellation is not None and cancellation.cancelled and not attempt.deadline.expired:
                try:
                    cancellation.raise_if_cancelled(limit.what)
                except MCPSyncError as cancelled:
                    raise cancelled from error
            raise
        finally:
            attempt.over()


def limit_of(method: str, params: Dict[str, Any], options: CallOptions) -> Deadline:
    """Return the absolute limit of a request that begins now."""
    return Deadline(options.max_timeout, _named(method, params), option="max_timeout=")


def _named(method: str, params: Dict[str, Any]) -> str:
    """Return what a request is called in errors."""
    about = params.get("name", params.get("uri"))
    return "%s (%s)" % (method, about) if isinstance(about, str) else method
