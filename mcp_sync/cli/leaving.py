"""What a server asks for, told to a user who cannot be asked here, with how to go on with the answer."""

import json
import shlex
from typing import Any, Dict, List

from ..errors import InputRequired
from .asking import message_lines
from .fields import hint_for, options_of, shown_value
from .output import clean, shorten

__all__ = ["document_of", "told"]

_MAX_LABEL = 60
_MAX_LINE = 400
_MAX_EXAMPLE = 500
#: How many requests, and how many fields of each form, are told of at most.
_MAX_REQUESTS = 20
_MAX_FIELDS = 50
#: A state that is longer is not shown: nobody copies it by hand.
_MAX_STATE = 300


def document_of(asked: InputRequired) -> Dict[str, Any]:
    """Return the same for programs: the result of the server, as far as it is known."""
    document: Dict[str, Any] = {"resultType": "input_required", "inputRequests": asked.input_requests}
    if asked.request_state is not None:
        document["requestState"] = asked.request_state
    if asked.task is not None:
        document["taskId"] = asked.task["task_id"]
    return document


def told(asked: InputRequired) -> List[str]:
    """Return lines that say what a server asks for, and how to go on."""
    lines = []
    for key, request in list(asked.input_requests.items())[:_MAX_REQUESTS]:
        lines += ["  " + line for line in _lines(key, request)]
    return lines + [_how_to_go_on(asked)]


def _params(request: Any) -> Dict[str, Any]:
    params = request.get("params") if isinstance(request, dict) else None
    return params if isinstance(params, dict) else {}


def _method(request: Any) -> Any:
    return request.get("method") if isinstance(request, dict) else None


def _fields(params: Dict[str, Any]) -> Dict[str, Any]:
    schema = params.get("requestedSchema")
    listed = schema.get("properties") if isinstance(schema, dict) else None
    return dict(list(listed.items())[:_MAX_FIELDS]) if isinstance(listed, dict) else {}


def _lines(key: str, request: Any) -> List[str]:
    params, name = _params(request), clean(shorten(key, _MAX_LABEL))
    if _method(request) != "elicitation/create":
        return ["%s: %s" % (name, clean(shorten(str(_method(request)), _MAX_LABEL)))]
    lines = ["%s: %s" % (name, " / ".join(message_lines(params)) or "(it does not say why)")]
    if params.get("mode", "form") == "url":
        return lines + ["  to be opened in a browser: %s" % clean(str(params.get("url", "")))]
    schema = params.get("requestedSchema")
    required = schema.get("required") if isinstance(schema, dict) else None
    for name, field in _fields(params).items():
        field = field if isinstance(field, dict) else {}
        options = options_of(field)
        choices = ", ".join(shown_value(value, []) for value, _ in options[:_MAX_FIELDS])
        parts = ["one of %s" % choices if options else hint_for(field, options, True)]
        if isinstance(required, list) and name in required:
            parts.append("required")
        if "default" in field:
            parts.append("default: %s" % shown_value(field["default"], []))
        about = ", ".join(part for part in parts if part)
        lines.append(clean(shorten("  %s%s" % (name, " (%s)" % about if about else ""), _MAX_LINE)))
    return lines


def _how_to_go_on(asked: InputRequired) -> str:
    example = {key: _example(request) for key, request in list(asked.input_requests.items())[:3]}
    words = ["--input-responses", shlex.quote(shorten(_as_json(example), _MAX_EXAMPLE))]
    if asked.task is not None:
        words += ["--task", shlex.quote(asked.task["task_id"])]
    state = asked.request_state
    if state is not None:
        can_be_copied = len(state) <= _MAX_STATE and state.isprintable()
        words += ["--request-state", shlex.quote(state) if can_be_copied else "'...' (with --json it is printed)"]
    return clean("To answer, give the same command once more, with: %s" % " ".join(words))


def _example(request: Any) -> Dict[str, Any]:
    """Return what answers a request like this: a form's defaults, and dots for the rest."""
    params = _params(request)
    if _method(request) != "elicitation/create":
        return {}
    if params.get("mode", "form") == "url":
        return {"action": "accept"}
    return {"action": "accept", "content": {name: _default(field) for name, field in _fields(params).items()}}


def _default(field: Any) -> Any:
    return field["default"] if isinstance(field, dict) and "default" in field else "..."


def _as_json(value: Any) -> str:
    try:
        return json.dumps(value)
    except RecursionError:
        return "{...}"
