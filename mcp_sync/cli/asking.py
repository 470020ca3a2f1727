"""What a server asks for, put to the user in plain prompts. See the specification, client/elicitation."""

import datetime
import json
import re
import sys
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple
from urllib.parse import urlsplit

from ..elicitation import problems
from .output import Output, clean, shorten

__all__ = ["Asker", "answer_like", "asked_lines", "read_line"]

#: How much of what a server says is shown.
_MAX_MESSAGE = 4000
_MAX_LABEL = 60
_MAX_TEXT = 400
_MAX_OPTIONS = 50

_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$")

_HELP = {
    ("string", "email"): "an e-mail address",
    ("string", "uri"): "a URI",
    ("string", "date"): "a date, 2026-12-31",
    ("string", "date-time"): "a moment, 2026-12-31T23:59:59Z",
    ("integer", ""): "a whole number",
    ("number", ""): "a number",
    ("boolean", ""): "yes or no",
}

_NOTHING = object()


class Declined(Exception):
    """The user does not want to answer."""


def read_line(output: Output, prompt: str) -> Optional[str]:
    """Ask for one line; None if there is no more (Ctrl-D). What the user types is not part of standard output.

    :param output: where the prompt goes.
    """
    output.write(prompt)
    line = "" if sys.stdin is None else sys.stdin.readline()
    if not line:
        output.line("")
        return None
    return line.rstrip("\r\n")


def _forget_what_was_typed() -> None:
    """Have keys that were hit before a question was seen not answer it."""
    try:
        import termios

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    except Exception:
        pass  # no such thing on this system, or no terminal; the module's own error is no OSError


class Asker:
    """Puts a server's questions to the user. One thread.

    :param output: the terminal.
    :param read: shows a prompt, and returns what was typed, or None for the end.
    """

    def __init__(self, output: Output, read: Callable[[Output, str], Optional[str]] = read_line) -> None:
        self._output = output
        self._read = read
        #: Which server it is, for people.
        self.where = ""

    def answer(self, params: Mapping[str, Any]) -> Dict[str, Any]:
        """Return the protocol's ``ElicitResult`` for an ``elicitation/create``."""
        _forget_what_was_typed()
        self._output.line("")
        self._output.line("%s asks:" % clean(self.where))
        for line in _message(params):
            self._output.line("  " + line)
        try:
            if params.get("mode", "form") == "url":
                return self._url(str(params.get("url", "")))
            schema = params.get("requestedSchema")
            return self._form(schema if isinstance(schema, dict) else {})
        except Declined:
            self._output.line("Declined.")
            return {"action": "decline"}

    # -- an address --------------------------------------------------------------------------------------------------------

    def _url(self, url: str) -> Dict[str, Any]:
        self._output.line("It wants you to open this address in a browser. Nothing is opened for you:")
        self._output.line("  " + clean(url))
        for line in _warnings(url):
            self._output.line("  " + line)
        if not self._yes("Have you opened it, and done what it is for? 'no' declines", False):
            raise Declined
        return {"action": "accept"}

    # -- a form ------------------------------------------------------------------------------------------------------------

    def _form(self, schema: Mapping[str, Any]) -> Dict[str, Any]:
        listed = schema.get("properties")
        fields = {name: field for name, field in listed.items() if isinstance(field, dict)} if isinstance(listed, dict) else {}
        if not fields:
            if not self._yes("Accept?", False):
                raise Declined
            return {"action": "accept", "content": {}}
        required = schema.get("required")
        needed = required if isinstance(required, list) else []
        self._output.line("Enter takes what stands in brackets; Ctrl-D declines, Ctrl-C cancels the call.")
        content = {name: field["default"] for name, field in fields.items() if "default" in field}
        while True:
            for name, field in fields.items():
                value = self._field(name, field, name in needed, content.get(name, _NOTHING))
                content.pop(name, None)
                if value is not _NOTHING:
                    content[name] = value
            # One answer was seen while it was typed. Several may be looked at again.
            if len(fields) == 1 or self._yes("Send these answers? 'no' asks again", True):
                return {"action": "accept", "content": content}

    def _field(self, name: str, field: Mapping[str, Any], needed: bool, current: Any) -> Any:
        """Ask until the answer fits."""
        options = _options(field)
        title = field.get("title")
        label = shorten(clean(title if isinstance(title, str) and title else name), _MAX_LABEL)
        description = field.get("description")
        if isinstance(description, str) and description:
            self._output.line("  %s: %s" % (label, clean(" ".join(description[:_MAX_TEXT].split()))))
        for number, (value, name_of_it) in enumerate(options[:_MAX_OPTIONS], 1):
            self._output.line("    %d  %s" % (number, clean(name_of_it)))
        if len(options) > _MAX_OPTIONS:
            self._output.line("    and %d more" % (len(options) - _MAX_OPTIONS))
        hint = _hint(field, options, needed or current is not _NOTHING)
        shown = "" if current is _NOTHING else " [%s]" % clean(shorten(_shown(current, options), _MAX_LABEL))
        prompt = "  %s%s%s: " % (label, " (%s)" % hint if hint else "", shown)
        while True:
            text = self._read(self._output, prompt)
            if text is None:
                raise Declined
            text = text.strip()
            if not text:
                if current is not _NOTHING or not needed:
                    return current
                self._output.line("  That is needed. Ctrl-D declines.")
                continue
            try:
                value = _value("" if text == '""' else text, field, options)
            except ValueError as error:
                self._output.line("  " + clean(str(error)))
                continue
            wrong = problems({"properties": {"It": field}}, {"It": value})
            if not wrong:
                return value
            self._output.line("  %s." % clean(wrong[0]))

    def _yes(self, question: str, default: bool) -> bool:
        while True:
            text = self._read(self._output, "%s [%s]: " % (question, "yes" if default else "no"))
            if text is None:
                raise Declined
            if not text.strip():
                return default
            answer = _as_yes_or_no(text)
            if answer is not None:
                return answer
            self._output.line("  yes or no?")


def _message(params: Mapping[str, Any]) -> List[str]:
    message = params.get("message")
    text = message if isinstance(message, str) else ""
    cut = text[:_MAX_MESSAGE] + (" …" if len(text) > _MAX_MESSAGE else "")
    return [clean(line) for line in cut.splitlines()]


def _warnings(url: str) -> List[str]:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return ["That is no address that a browser could open."]
    lines = ["Its host: %s" % clean(host or "(none)")]
    if not host.isascii() or "xn--" in host:
        lines.append("Beware: the host's name has letters of other alphabets. They may look like those that you expect.")
    if parts.username is not None:
        lines.append("Beware: what stands before '@' is not the host.")
    if parts.scheme != "https" and host not in ("localhost", "127.0.0.1", "::1"):
        lines.append("Beware: it is not https. Others can read and change what is sent.")
    return lines


# -- values ------------------------------------------------------------------------------------------------------------


def _options(field: Mapping[str, Any]) -> List[Tuple[Any, str]]:
    """Return what may be chosen, with its names for people; nothing if there is no choice."""
    items = field.get("items")
    if field.get("type") == "array" and isinstance(items, dict):
        field = items
    plain = field.get("enum")
    if isinstance(plain, list):
        names = field.get("enumNames")  # the way of older revisions
        titles = names if isinstance(names, list) and len(names) == len(plain) else plain
        return [(value, str(title)) for value, title in zip(plain, titles)]
    for word in ("oneOf", "anyOf"):
        titled = field.get(word)
        if isinstance(titled, list):
            found = [option for option in titled if isinstance(option, dict) and "const" in option]
            return [(option["const"], str(option.get("title", option["const"]))) for option in found]
    return []


def _hint(field: Mapping[str, Any], options: List[Tuple[Any, str]], needed: bool) -> str:
    kind, form = str(field.get("type", "")), field.get("format")
    parts = []
    if kind == "array":
        parts.append("one or more, with commas" if options else "a list in JSON")
    elif options:
        parts.append("one of them")
    else:
        known = _HELP.get((kind, str(form or "")))
        if known is not None:
            parts.append(known)
    low, high, unit = _limits(field, kind)
    if low is not None and high is not None:
        parts.append("%g to %g%s" % (low, high, unit))
    elif low is not None or high is not None:
        parts.append("at %s %g%s" % ("most" if low is None else "least", high if low is None else low, unit))
    if not needed:
        parts.append("may be left empty")
    return ", ".join(parts)


def _limits(field: Mapping[str, Any], kind: str) -> Tuple[Any, Any, str]:
    least, most, unit = {
        "string": ("minLength", "maxLength", " characters"),
        "array": ("minItems", "maxItems", " of them"),
    }.get(kind, ("minimum", "maximum", ""))
    found = [field.get(least), field.get(most)]
    low, high = [it if isinstance(it, (int, float)) and not isinstance(it, bool) else None for it in found]
    return low, high, unit


def _shown(value: Any, options: List[Tuple[Any, str]]) -> str:
    if isinstance(value, list):
        return ", ".join(_shown(each, options) for each in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    for option, title in options:
        if option == value:
            return title
    return value if isinstance(value, str) else json.dumps(value)


def _value(text: str, field: Mapping[str, Any], options: List[Tuple[Any, str]]) -> Any:
    """Return the value that was typed.

    :raises ValueError: if it cannot be one; says why.
    """
    kind = field.get("type")
    if kind == "array" and options:
        return [_chosen(part.strip(), options) for part in text.split(",") if part.strip()]
    if options:
        return _chosen(text, options)
    if kind == "boolean":
        answer = _as_yes_or_no(text)
        if answer is None:
            raise ValueError("yes or no?")
        return answer
    if kind in ("integer", "number", "array", "object"):
        return _from_json(text, kind)
    _check_format(text, field.get("format"))
    return text


def _from_json(text: str, kind: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    fits = isinstance(value, {"array": list, "object": dict}.get(kind, (int, float)))
    if not fits or isinstance(value, bool) or value in (float("inf"), float("-inf")) or value != value:
        raise ValueError("That is no %s." % {"integer": "whole number", "array": "list in JSON"}.get(kind, kind))
    return int(value) if kind == "integer" and isinstance(value, float) and value.is_integer() else value


def _chosen(text: str, options: List[Tuple[Any, str]]) -> Any:
    for value, _ in options:
        if text == value:
            return value
    for value, title in options:
        if text.lower() in (title.lower(), str(value).lower()):
            return value
    if re.match(r"[0-9]{1,4}$", text, re.ASCII) and 1 <= int(text) <= len(options):
        return options[int(text) - 1][0]
    raise ValueError("That is none of them: %s" % shorten(text, _MAX_LABEL))


def _as_yes_or_no(text: str) -> Optional[bool]:
    word = text.strip().lower()
    if word in ("y", "yes", "true"):
        return True
    return False if word in ("n", "no", "false") else None


def _check_format(text: str, form: Any) -> None:
    fits = True
    if form == "email":
        fits = re.match(r"[^@\s]+@[^@\s]+$", text) is not None
    elif form == "uri":
        fits = re.match(r"[A-Za-z][A-Za-z0-9+.-]*:\S+$", text) is not None
    elif form == "date-time":
        fits = _DATE_TIME.match(text) is not None
    elif form == "date":
        try:
            datetime.datetime.strptime(text, "%Y-%m-%d")
        except ValueError:
            fits = False
    if not fits:
        raise ValueError("That is not %s." % _HELP["string", form])


# -- for whoever is not at a terminal ----------------------------------------------------------------------------------


def asked_lines(key: str, request: Any) -> List[str]:
    """Return lines that say what a server asks for, and under which identifier of its own."""
    request = request if isinstance(request, dict) else {}
    params = request.get("params")
    params = params if isinstance(params, dict) else {}
    method = request.get("method")
    if method != "elicitation/create":
        return ["%s: %s" % (clean(shorten(key, _MAX_LABEL)), clean(shorten(str(method), _MAX_LABEL)))]
    lines = ["%s: %s" % (clean(shorten(key, _MAX_LABEL)), " / ".join(_message(params)) or "(it does not say why)")]
    if params.get("mode", "form") == "url":
        return lines + ["  to be opened in a browser: %s" % clean(str(params.get("url", "")))]
    schema = params.get("requestedSchema")
    listed = schema.get("properties") if isinstance(schema, dict) else None
    required = schema.get("required") if isinstance(schema, dict) else None
    for name, field in list(listed.items())[:_MAX_OPTIONS] if isinstance(listed, dict) else []:
        field = field if isinstance(field, dict) else {}
        options = _options(field)
        needed = isinstance(required, list) and name in required
        hint = _hint(field, options, True) if not options else "one of %s" % ", ".join(str(value) for value, _ in options)
        parts = [hint, "required" if needed else "", "default: %s" % _shown(field["default"], []) if "default" in field else ""]
        about = ", ".join(part for part in parts if part)
        lines.append(clean(shorten("  %s%s" % (name, " (%s)" % about if about else ""), _MAX_TEXT)))
    return lines


def answer_like(request: Any) -> Dict[str, Any]:
    """Return an example of what answers a request: a form's defaults, and dots for the rest."""
    request = request if isinstance(request, dict) else {}
    params = request.get("params")
    params = params if isinstance(params, dict) else {}
    if request.get("method") != "elicitation/create":
        return {}
    if params.get("mode", "form") == "url":
        return {"action": "accept"}
    schema = params.get("requestedSchema")
    listed = schema.get("properties") if isinstance(schema, dict) else None
    fields = list(listed.items())[:_MAX_OPTIONS] if isinstance(listed, dict) else []
    return {"action": "accept", "content": {name: _default(field) for name, field in fields}}


def _default(field: Any) -> Any:
    return field["default"] if isinstance(field, dict) and "default" in field else "..."
