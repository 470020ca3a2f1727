"""Pure rules: which watched URIs a notice means.

A notice may name a resource otherwise than the client does (trailing slash, case of scheme and host, percent-encoding), or
name a part of it. URIs are sent untouched; only this comparison looks at what they mean.
"""

import re
from typing import Dict, Iterable, List, Tuple
from urllib.parse import quote, unquote

__all__ = ["Matcher", "canonical", "parents"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):(//)?")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def _plain_escape(match: "re.Match[str]") -> str:
    char = unquote(match.group(0))
    return char if char in _UNRESERVED else match.group(0).upper()


def canonical(uri: str) -> str:
    """Return one spelling for all spellings of the same URI.

    Lower-case scheme and host, no escapes of plain characters, upper-case escapes of others, characters outside ASCII
    escaped, no trailing slash. Only for comparing; never sent.
    """
    # Characters that a URI may not hold are escaped as UTF-8, since that is how the other side may spell them.
    text = quote(uri, safe="%:/?#[]@!$&'()*+,;=-._~\\|^`{}\"<> ", errors="replace")
    text = _ESCAPE.sub(_plain_escape, text)
    match = _SCHEME.match(text)
    if match is not None:
        rest = text[match.end() :]
        scheme = match.group(1).lower() + ":"
        if match.group(2):
            end = min((i for i in (rest.find(c) for c in "/?#") if i >= 0), default=len(rest))
            text = scheme + "//" + rest[:end].lower() + rest[end:]
        else:
            text = scheme + rest
    stripped = text.rstrip("/")
    # "file:///" must not become "file:", and "/" not nothing.
    return stripped if stripped and not stripped.endswith(":") else text


def parents(uri: str) -> Iterable[str]:
    """Yield the canonical URIs of which a canonical ``uri`` is a part: without fragment, without query, and up its path."""
    for mark in "#?":
        at = uri.find(mark)
        if at > 0:
            uri = uri[:at].rstrip("/") or uri[:at]
            yield uri
    match = _SCHEME.match(uri)
    start = match.end() if match is not None else 0
    at = uri.rfind("/", start)
    while at > 0:
        uri = uri[:at]
        if uri.endswith("/"):
            # "file:///a": the root of a URI without a host is spelled with its slashes.
            yield uri + "/"
            return
        yield uri
        at = uri.rfind("/", start)


class Matcher:
    """Finds the watched URIs that a notice about a URI concerns. Immutable but for a bounded memory of its answers; any thread.

    :param watched: the URIs as their watchers spell them.
    """

    _REMEMBERED = 4096

    def __init__(self, watched: Iterable[str] = ()) -> None:
        self._by_canonical: Dict[str, List[str]] = {}
        for uri in watched:
            self._by_canonical.setdefault(canonical(uri), []).append(uri)
        self._answers: Dict[str, Tuple[str, ...]] = {}

    def concerned(self, named: str) -> Tuple[str, ...]:
        """Return the watched URIs that change when the server says that ``named`` did."""
        answer = self._answers.get(named)
        if answer is None:
            spelled = canonical(named)
            found = list(self._by_canonical.get(spelled, ()))
            for parent in parents(spelled):
                found.extend(self._by_canonical.get(parent, ()))
            answer = tuple(dict.fromkeys(found))
            # A server can name any number of URIs; what is remembered of them is not allowed to grow with it.
            if len(self._answers) >= self._REMEMBERED:
                self._answers.clear()
            self._answers[named] = answer
        return answer
