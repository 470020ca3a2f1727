"""Reading one HTTP/1.1 request, and the record of it that a test can look at afterwards."""

import json
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

from .protocol import LISTEN
from .wire import Wire

_HEAD_LIMIT = 65536
_BODY_LIMIT = 64 * 1024 * 1024


class Headers(Mapping[str, str]):
    """HTTP headers: looked up without regard to case, iterated as they were sent.

    A header that was sent twice is one value, joined with a comma, as HTTP defines.

    :param pairs: names and values in the order in which they came.
    """

    def __init__(self, pairs: List[Tuple[str, str]]) -> None:
        self._names: Dict[str, str] = {}
        self._values: Dict[str, str] = {}
        for name, value in pairs:
            key = name.lower()
            self._names.setdefault(key, name)
            self._values[key] = self._values[key] + ", " + value if key in self._values else value

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names.values())

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return "Headers({!r})".format([(name, self[name]) for name in self])


class Request:
    """One request as the server received it.

    ``http_method``, ``path``, ``headers`` and ``body`` are what came over the wire. ``message`` is the JSON-RPC
    message in the body (an empty dictionary when the body holds none), ``method``, ``params`` and ``id`` are its
    parts; ``method`` is ``""`` when there is none, for instance for a GET. ``principal`` is what ``authenticate``
    made of the headers. ``http_status`` is the status of the answer, ``None`` until the answer starts, and for ever if
    the connection ended without one. Over stdio, ``body`` is the line, and what belongs to HTTP is empty.

    Threads: written by the thread that serves it; the status is the only attribute that changes after arrival.
    """

    def __init__(self, http_method: str, path: str, headers: Headers, body: bytes, http_version: str) -> None:
        self.http_method = http_method
        self.path = path
        self.http_version = http_version
        self.headers = headers
        self.body = body
        self.message = _message(body)
        method = self.message.get("method")
        self.method = method if isinstance(method, str) else ""
        params = self.message.get("params")
        self.params: Dict[str, Any] = params if isinstance(params, dict) else {}
        self.id = self.message.get("id")
        meta = self.params.get("_meta")
        #: ``params._meta``, empty where there is none.
        self.meta: Dict[str, Any] = meta if isinstance(meta, dict) else {}
        self.principal: Optional[str] = None
        self.http_status: Optional[int] = None

    def concerns(self, method: Optional[str], uri: Optional[str]) -> bool:
        """Whether this is a request with that method about that URI; ``None`` stands for any.

        A method is that of JSON-RPC, or that of HTTP: ``"GET"`` is the opening of a legacy stream. A URI is the ``uri``
        of a read or a subscription, the ``name`` of a tool or a prompt, the ``taskId`` of a task, what a completion
        refers to, or one of those that a listen asks for.
        """
        if method is not None and method not in (self.method, self.http_method):
            return False
        if uri is None:
            return True
        if self.method == LISTEN:
            wanted = self.params.get("notifications")
            uris = wanted.get("resourceSubscriptions") if isinstance(wanted, dict) else None
            return isinstance(uris, list) and uri in uris
        ref = self.params.get("ref")
        referred = (ref.get("uri"), ref.get("name")) if isinstance(ref, dict) else ()
        return uri in (self.params.get("uri"), self.params.get("name"), self.params.get("taskId")) + referred

    def __repr__(self) -> str:
        return "<{} {} {} -> {}>".format(self.http_method, self.method or self.path,
                                         self.params.get("uri", self.params.get("name", "")), self.http_status)


def _message(body: bytes) -> Dict[str, Any]:
    try:
        message = json.loads(body.decode("utf-8"))
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def line_request(line: bytes) -> Request:
    """The record of one line over stdio: a request without anything of HTTP."""
    return Request("", "", Headers([]), line, "")


def read_request(wire: Wire) -> Request:
    """Wait for the next request on a connection and read it whole.

    :raises Disconnected: there is no next request.
    :raises ValueError: this is not HTTP/1.x, or larger than a test has any use for.
    """
    lines = wire.read_until(b"\r\n\r\n", _HEAD_LIMIT).decode("iso-8859-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise ValueError("not an HTTP/1.x request: {!r}".format(lines[0]))
    pairs = []
    for line in lines[1:-2]:
        name, _, value = line.partition(":")
        pairs.append((name, value.strip(" \t")))
    headers = Headers(pairs)
    if headers.get("Expect", "").lower() == "100-continue":
        wire.send(b"HTTP/1.1 100 Continue\r\n\r\n")
    if "chunked" in headers.get("Transfer-Encoding", "").lower():
        body = _read_chunks(wire)
    else:
        body = wire.read(_bounded(headers.get("Content-Length", "0"), 10))
    return Request(words[0], words[1], headers, body, words[2])


def _read_chunks(wire: Wire) -> bytes:
    body = bytearray()
    while True:
        size = _bounded(wire.read_until(b"\r\n", _HEAD_LIMIT).split(b";")[0].strip().decode("ascii"), 16)
        if size == 0:
            break
        body += wire.read(size)
        wire.read(2)
        _bounded(str(len(body)), 10)
    while wire.read_until(b"\r\n", _HEAD_LIMIT) != b"\r\n":
        pass  # trailers
    return bytes(body)


def _bounded(text: str, base: int) -> int:
    size = int(text, base)
    if not 0 <= size <= _BODY_LIMIT:
        raise ValueError("a body of {} bytes".format(size))
    return size


Authenticate = Callable[[Mapping[str, str]], Optional[str]]
