"""Pure rules: which watched URIs a notice means.

A notice may name a resource otherwise than the client does (trailing slash, case of scheme and host, percent-encoding),
or name a part of it. URIs are sent untouched; only this comparison looks at what they mean.
"""

import re
from typing import Dict, Iterable, List, Optional, Set, Tuple
from urllib.parse import quote, unquote

__all__ = ["Matcher", "canonical", "parents"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):(//)?")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_PORT = re.compile(r":([0-9]*)\Z")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_DEFAULT_PORTS = {"http": "80", "ws": "80", "https": "443", "wss": "443", "ftp": "21"}


def canonical(uri: str) -> str:
    """Return one spelling for all spellings of the same URI. Only for comparing; never sent.

    Scheme and host in lower case, the host in ASCII; no default port; no escapes of plain characters, upper-case
    escapes of all others; no ``.`` and ``..`` in the path; no trailing slash.
    """
    # Characters that a URI may not hold are escaped as UTF-8, since that is how the other side may spell them.
    text = quote(uri, safe="%:/?#[]@!$&'()*+,;=-._~", errors="replace")
    text = _ESCAPE.sub(_plain_escape, text)
    match = _SCHEME.match(text)
    if match is not None:
        scheme, rest = match.group(1).lower(), text[match.end() :]
        if match.group(2):
            end = _first(rest, "/?#")
            text = "%s://%s%s" % (scheme, _authority(scheme, rest[:end]), _without_dots(rest[end:]))
        elif scheme == "file" and rest.startswith("/"):
            text = "file://" + _without_dots(rest)  # one slash or three: no host is meant
        else:
            text = "%s:%s" % (scheme, rest)
    stripped = text.rstrip("/")
    # "file:///" must not become "file:", and "/" not nothing.
    return stripped if stripped and not stripped.endswith(":") else text


def _plain_escape(match: "re.Match[str]") -> str:
    char = unquote(match.group(0))
    return char if char in _UNRESERVED else match.group(0).upper()


def _first(text: str, marks: str) -> int:
    return min((at for at in (text.find(mark) for mark in marks) if at >= 0), default=len(text))


def _authority(scheme: str, authority: str) -> str:
    user, at, host = authority.rpartition("@")
    port = _PORT.search(host)
    if port is not None and port.group(1) in ("", _DEFAULT_PORTS.get(scheme)):
        host = host[: port.start()]
    host = host.lower()
    if "%" in host:
        try:
            host = unquote(host).encode("idna").decode("ascii")
        except UnicodeError:
            pass  # no name that could be registered: compared as it is
    if scheme == "file" and host == "localhost":
        host = ""
    return user + at + host


def _without_dots(rest: str) -> str:
    """Return path, query and fragment, the path without ``.`` and ``..``."""
    if "/." not in rest:
        return rest
    end = _first(rest, "?#")
    kept: List[str] = []
    for segment in rest[:end].split("/")[1:]:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    return "/" + "/".join(kept) + rest[end:]


def parents(uri: str, longest: Optional[int] = None) -> Iterable[str]:
    """Yield the canonical URIs of which a canonical ``uri`` is a part: without fragment, without query, up its path.

    :param longest: leave out those that have more characters.
    """
    for mark in "#?":
        at = uri.find(mark)
        if at > 0:
            uri = uri[:at].rstrip("/") or uri[:at]
            yield uri
    match = _SCHEME.match(uri)
    start = match.end() if match is not None else 0
    end = len(uri) if longest is None else longest + 1
    at = uri.rfind("/", start, end)
    while at > 0:
        uri = uri[:at]
        if uri.endswith("/"):
            # "file:///a": the root of a URI without a host is spelled with its slashes.
            yield uri + "/"
            return
        yield uri
        at = uri.rfind("/", start)


class Matcher:
    """Finds the watched URIs that a notice about a URI concerns. Immutable; any thread.

    :param watched: the URIs as their watchers spell them.
    """

    def __init__(self, watched: Iterable[str] = ()) -> None:
        # There may be thousands, and most are spelled canonically: of these nothing more than the text itself is kept.
        self._canonical: Set[str] = set()
        self._otherwise: Dict[str, List[str]] = {}
        self._longest = 0
        for uri in watched:
            spelled = canonical(uri)
            self._longest = max(self._longest, len(spelled))
            if spelled == uri:
                self._canonical.add(uri)
            else:
                self._otherwise.setdefault(spelled, []).append(uri)

    def concerned(self, named: str) -> Tuple[str, ...]:
        """Return the watched URIs that change when the server says that ``named`` did."""
        spelled = canonical(named)
        found: List[str] = []
        for meant in (spelled, *parents(spelled, self._longest)):
            if meant in self._canonical:
                found.append(meant)
            found.extend(self._otherwise.get(meant, ()))
        return tuple(dict.fromkeys(found))
