"""What a server asks for, put to the user in plain prompts. See the specification, client/elicitation."""

import sys
from typing import Any, Callable, Dict, List, Mapping, Optional
from urllib.parse import urlsplit

from ..elicitation import problems
from .fields import hint_for, options_of, shown_value, value_of, yes_or_no
from .output import Output, clean, shorten

__all__ = ["Asker", "message_lines", "read_line"]

#: How much of what a server says is shown.
_MAX_MESSAGE = 4000
_MAX_LABEL = 60
_MAX_TEXT = 400
_MAX_OPTIONS = 50


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
    except ImportError:
        return  # no such thing on this system
    try:
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    except (termios.error, OSError, ValueError):
        pass  # no terminal; the module's own error is no OSError


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
        for line in message_lines(params):
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
        options = options_of(field)
        title = field.get("title")
        label = shorten(clean(title if isinstance(title, str) and title else name), _MAX_LABEL)
        description = field.get("description")
        if isinstance(description, str) and description:
            self._output.line("  %s: %s" % (label, clean(" ".join(description[:_MAX_TEXT].split()))))
        for number, (value, name_of_it) in enumerate(options[:_MAX_OPTIONS], 1):
            self._output.line("    %d  %s" % (number, clean(name_of_it)))
        if len(options) > _MAX_OPTIONS:
            self._output.line("    and %d more" % (len(options) - _MAX_OPTIONS))
        hint = hint_for(field, options, needed or current is not _NOTHING)
        shown = "" if current is _NOTHING else " [%s]" % clean(shorten(shown_value(current, options), _MAX_LABEL))
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
                value = value_of("" if text == '""' else text, field, options)
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
            answer = yes_or_no(text)
            if answer is not None:
                return answer
            self._output.line("  yes or no?")


def message_lines(params: Mapping[str, Any]) -> List[str]:
    """Return why a server asks, line by line."""
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
