"""What a server asks the client for, and who answers: the user, a model, the program's roots.

A modern server asks by an ``input_required`` result, a legacy one by requests of its own; the same plain functions answer both.
See the specification, basic/patterns/mrtr, client/elicitation, client/sampling, client/roots.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Mapping, Optional, Union

from . import _fork
from .errors import InputRequired, ProtocolError, beginning_of
from .sessions.base import InvalidParams

__all__ = ["Handler", "Inputs", "Root"]

#: From the parameters of a server's request to what answers it.
Handler = Callable[[Dict[str, Any]], Any]

#: A root: its URI, or the protocol's object.
Root = Union[str, Mapping[str, Any]]

_ELICIT, _SAMPLE, _ROOTS = "elicitation/create", "sampling/createMessage", "roots/list"
_MODES = ("form", "url")

#: More requests than this in one answer are taken for nonsense.
_MAX_REQUESTS = 100


class Inputs:
    """Who answers a server's questions. Immutable; any thread. The functions run in the thread of the call that is asked.

    :param roots: the program's root directories.
    :param on_sampling: answers ``sampling/createMessage``.
    :param on_elicitation: answers ``elicitation/create``.
    :param elicitation_modes: which kinds of that it can: ``"form"``, ``"url"``.
    :raises ValueError: for a mode that there is not.
    """

    def __init__(
        self,
        roots: Iterable[Root] = (),
        on_sampling: Optional[Handler] = None,
        on_elicitation: Optional[Handler] = None,
        elicitation_modes: Iterable[str] = ("form",),
    ) -> None:
        listed = [{"uri": root} if isinstance(root, str) else dict(root) for root in roots]
        self._modes = tuple(elicitation_modes)
        if not self._modes or any(mode not in _MODES for mode in self._modes):
            raise ValueError('elicitation_modes are "form" and "url", not %r' % (self._modes,))
        # From method to the function that answers with a whole result.
        self._handlers: Dict[str, Callable[[Dict[str, Any]], Dict[str, Any]]] = {}
        #: What the server is told that the client can do.
        self.capabilities: Dict[str, Any] = {}
        if listed:
            self._handlers[_ROOTS] = lambda params: {"roots": listed}
            self.capabilities["roots"] = {}
        if on_sampling is not None:
            sample: Handler = on_sampling
            self._handlers[_SAMPLE] = lambda params: _whole(sample(params), "on_sampling")
            self.capabilities["sampling"] = {}
        if on_elicitation is not None:
            elicit: Handler = on_elicitation
            self._handlers[_ELICIT] = lambda params: self._elicited(params, elicit)
            # An empty object means forms, and is all that revisions before 2025-11-25 know.
            self.capabilities["elicitation"] = {} if self._modes == ("form",) else {mode: {} for mode in self._modes}
        #: The same functions for a legacy server, which waits for each answer.
        self.handlers: Dict[str, Callable[[Dict[str, Any]], Dict[str, Any]]] = dict(self._handlers)
        if _ELICIT in self._handlers:
            self.handlers[_ELICIT] = _dismissed_if_left(self._handlers[_ELICIT])

    def answer(self, asked: InputRequired) -> Dict[str, Any]:
        """Answer all that a server asks for, together.

        :param asked: what it asks for.
        :returns: the answers, by the server's own identifiers.
        :raises InputRequired: the same, if there is something that nobody can answer (then nobody was asked), or if one who is
            asked leaves it to whoever made the call, by raising another.
        :raises ProtocolError: if it makes no sense.
        """
        requests = asked.input_requests
        if len(requests) > _MAX_REQUESTS:
            raise ProtocolError("the server asks for %d inputs at once" % len(requests))
        handlers = {key: self._handler(asked, request) for key, request in requests.items()}
        try:
            return {key: handler(_params(requests[key])) for key, handler in handlers.items()}
        except InputRequired as left:
            raise asked from left

    def _elicited(self, params: Dict[str, Any], elicit: Handler) -> Dict[str, Any]:
        with _fork.held_off():
            from .elicitation import elicited, mode_of
        if mode_of(params) not in self._modes:
            raise InvalidParams("this client does not answer in the mode %s" % beginning_of(mode_of(params)))
        return elicited(params, elicit(params))

    def _handler(self, asked: InputRequired, request: Any) -> Callable[[Dict[str, Any]], Dict[str, Any]]:
        method = request.get("method") if isinstance(request, dict) else None
        if not isinstance(method, str):
            raise ProtocolError("the server asks for an input that makes no sense: %s" % beginning_of(request))
        handler = self._handlers.get(method)
        with _fork.held_off():
            from .elicitation import mode_of
        if handler is None or (method == _ELICIT and mode_of(_params(request)) not in self._modes):
            raise asked
        return handler


def _params(request: Dict[str, Any]) -> Dict[str, Any]:
    params = request.get("params")
    return params if isinstance(params, dict) else {}


def _dismissed_if_left(handler: Callable[[Dict[str, Any]], Dict[str, Any]]) -> Callable[[Dict[str, Any]], Dict[str, Any]]:
    def answer(params: Dict[str, Any]) -> Dict[str, Any]:
        try:
            return handler(params)
        except InputRequired:
            return {"action": "cancel"}  # it cannot be answered later

    return answer


def _whole(result: Any, whose: str) -> Dict[str, Any]:
    if not isinstance(result, Mapping):
        raise TypeError("%s has to return the protocol's result, a mapping, and not %r" % (whose, result))
    return dict(result)
