"""The bytes of one answer: as they come, decompressed, and not taken for whole if they are not."""

from __future__ import annotations

import http.client
import time
import zlib
from typing import Any, Callable, Iterator, Mapping, Optional

import urllib3.exceptions

from .._deadline import Deadline
from ..errors import ProtocolError
from ._guard import Guard
from ._headers import body_length

__all__ = ["Body"]

_CHUNK = 65536
# When the response has come on a stream, its end is waited for as long as this: then its connection can be used again.
_FAREWELL = 0.01


class Body:
    """The body of one answer. One thread.

    :param raw: urllib3's response, of which nothing was read.
    :param guard: the exchange's.
    :param where: the server, for people.
    """

    def __init__(self, raw: Any, guard: Guard, where: str) -> None:
        self.headers: Mapping[str, str] = raw.headers
        self.status: int = raw.status
        #: When the last byte came, in seconds since 1970; None if none did.
        self.heard_at: Optional[float] = None
        #: How many signs of life came that were no messages: a server that sends such is missed sooner.
        self.signs_of_life: Callable[[], int] = int
        self._raw = raw
        self._guard = guard
        self._where = where
        self._at_end = False
        self._open = True

    @property
    def length(self) -> Optional[int]:
        """How many bytes it says that it has, compressed or not; None if it does not say.

        :raises ProtocolError: if it says something that makes no sense.
        """
        if getattr(self._raw._fp, "chunked", False):
            return None
        try:
            return body_length(self.headers.get("Content-Length"))
        except ValueError as error:
            raise ProtocolError("%s sent an answer of which nobody knows the end: %s" % (self._where, error)) from error

    def hurry(self, patience: float) -> None:
        """Wait no longer than ``patience`` seconds for the next piece from now on."""
        self._guard.silence = patience

    def chunks(self) -> Iterator[bytes]:
        """Yield what comes, when it comes, to the end.

        :raises ProtocolError: if the answer is in no form that can be read.
        :raises Exception: whatever the libraries raise, ``IncompleteRead`` if the end came too early.
        """
        decompress = self._decompressor()
        _ = self.length  # or it might never end
        while True:
            chunk = self._read()
            if not chunk:
                break
            if decompress is None:
                yield chunk
            else:
                yield from decompress.pieces(chunk)
        if self._guard.interrupted:
            raise ConnectionAbortedError("interrupted")
        if not self._at_end or (decompress is not None and not decompress.at_end):
            raise http.client.IncompleteRead(b"")

    def farewell(self) -> None:
        """All that matters has come. If the body ends at once, its connection can be used again."""
        # Both: another thread may be about to put the deadline off.
        self._guard.deadline, self._guard.silence = Deadline(_FAREWELL), _FAREWELL
        try:
            for _ in range(3):
                if self._at_end or not self._read():
                    break
        except (OSError, http.client.HTTPException, ValueError):
            pass  # it does not; close() ends the connection

    def close(self) -> None:
        """Give the connection back, or end it if it cannot be used again."""
        if not self._open:
            return
        self._open = False
        response = self._raw._fp
        try:
            response.close()
            # From here on an interruption must not hit the next exchange on this connection, and what was interrupted
            # is not used again.
            self._guard.detach()
            if self._at_end and not self._guard.interrupted and not getattr(response, "surplus", False):
                self._raw.release_conn()
            else:
                self._raw.close()
        except (OSError, http.client.HTTPException, urllib3.exceptions.HTTPError, ValueError):
            pass  # it is gone either way

    def _read(self) -> bytes:
        # Straight from http.client: what there is, at once. urllib3's and requests' own ways wait for a buffer to fill.
        if self._guard.lively is not None and self.signs_of_life():
            self._guard.silence, self._guard.lively = self._guard.lively, None
        response = self._raw._fp
        chunk: bytes = response.read1(_CHUNK)
        left = getattr(response, "chunk_left", None)
        if isinstance(left, int) and left < 0:
            # http.client takes any number for the size of a chunk, a negative one as well.
            raise http.client.IncompleteRead(b"")
        if chunk:
            self.heard_at = time.time()
        else:
            self._at_end = not getattr(response, "length", None)
        return chunk

    def _decompressor(self) -> "Optional[_Decompressor]":
        coding = (self.headers.get("Content-Encoding") or "identity").strip().lower()
        if coding in ("identity", ""):
            return None
        if coding in ("gzip", "x-gzip", "deflate"):
            return _Decompressor(self._where)
        raise ProtocolError(
            "%s compresses its answers (%s) although asked not to, in a way that is not understood here"
            % (self._where, coding)
        )


class _Decompressor:
    """Undoes gzip and deflate, never more than a piece at a time."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._inner: Any = zlib.decompressobj(47)  # gzip or zlib, whichever it is
        self.at_end = True  # nothing at all is whole

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Yield all that can be told from ``data`` and what came before."""
        while data:
            self.at_end = False
            try:
                piece = self._inner.decompress(data, _CHUNK)
            except zlib.error as error:
                raise ProtocolError(
                    "%s compresses its answers although asked not to, and wrongly: %s" % (self._where, error)
                ) from error
            data = self._inner.unconsumed_tail
            while piece:
                yield piece
                # A full piece may not be all that the consumed bytes hold.
                piece = self._inner.decompress(b"", _CHUNK) if not data and len(piece) == _CHUNK else b""
            if self._inner.eof:
                # Some servers compress each event for itself, one after the other.
                self.at_end, data = True, self._inner.unused_data
                self._inner = zlib.decompressobj(47)
