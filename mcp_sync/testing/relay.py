"""The process between a client and a :class:`~mcp_sync.testing.StdioServer`: standard input and output over a socket.

A client starts this file as its server. Everything that a server does is done in the process of the test; this one only
carries bytes, and dies as it is told. So a test has the whole server in its hands, and the client has a real process.

This file imports nothing of the package, because it is run as a program, and should be running in no time.

Frames, both ways: one byte that says what it is, four bytes of length, and that many bytes.
"""

import argparse
import os
import queue
import signal
import socket
import struct
import sys
import threading
from typing import Iterator, List, NoReturn, Optional, Tuple

# From the process to the server:
HELLO, INPUT, END_OF_INPUT, TERMINATE = b"H", b"I", b"Z", b"T"
# From the server to the process:
OUTPUT, ERROR_OUTPUT, EXIT, KILL, IGNORE_SIGTERM, GO = b"O", b"E", b"X", b"K", b"S", b"G"

HEAD = struct.Struct(">cI")
_SIZE = 65536


def frame(kind: bytes, payload: bytes = b"") -> bytes:
    """One frame."""
    return HEAD.pack(kind, len(payload)) + payload


class Relay:
    """Carries bytes until it is told to exit, or the server is gone.

    :param sock: the connection to the server.
    :param token: proves to the server that this is a process of its own.

    Threads: the main thread calls :meth:`run`, once.
    """

    def __init__(self, sock: socket.socket, token: str) -> None:
        self._sock = sock
        self._token = token
        self._orders: "queue.Queue[Tuple[bytes, bytes]]" = queue.Queue()
        self._lock = threading.Lock()  # held while a frame is sent: two threads do that

    def run(self) -> NoReturn:
        """Do what the server orders, one thing after the other; it does not return."""
        self._send(HELLO, "{} {}".format(self._token, os.getpid()).encode("ascii"))
        threading.Thread(target=self._receive, name="orders", daemon=True).start()
        while True:
            kind, payload = self._orders.get()
            if kind == GO:
                threading.Thread(target=self._read_input, name="input", daemon=True).start()
            elif kind == OUTPUT:
                _write(1, payload)
            elif kind == ERROR_OUTPUT:
                _write(2, payload)
            elif kind == IGNORE_SIGTERM:
                signal.signal(signal.SIGTERM, lambda number, stack: self._send(TERMINATE))
            elif kind == EXIT:
                os._exit(int(payload))
            elif kind == KILL:
                die()

    def _receive(self) -> None:
        try:
            for kind, payload in _frames(self._sock):
                self._orders.put((kind, payload))
        except OSError:
            die()  # a reset: the server has been killed
        self._orders.put((EXIT, b"1"))

    def _read_input(self) -> None:
        while True:
            data = os.read(0, _SIZE)
            self._send(INPUT if data else END_OF_INPUT, data)
            if not data:
                return

    def _send(self, kind: bytes, payload: bytes = b"") -> None:
        try:
            with self._lock:
                self._sock.sendall(frame(kind, payload))
        except OSError:
            pass  # the other thread finds out as well, and ends the process


def die() -> None:
    """End this process the way a crash does."""
    if hasattr(signal, "SIGKILL"):
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(137)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view):]
        except OSError:
            return  # nobody reads it any more


def _frames(sock: socket.socket) -> Iterator[Tuple[bytes, bytes]]:
    received = bytearray()
    while True:
        while len(received) >= HEAD.size:
            kind, length = HEAD.unpack_from(received)
            if len(received) < HEAD.size + length:
                break
            yield kind, bytes(received[HEAD.size:HEAD.size + length])
            del received[:HEAD.size + length]
        data = sock.recv(_SIZE)
        if not data:
            return
        received += data


def main(arguments: Optional[List[str]] = None) -> NoReturn:
    """Be the process of a server that runs elsewhere on this machine."""
    parser = argparse.ArgumentParser(description="Carry standard input and output to a mcp_sync.testing.StdioServer.")
    parser.add_argument("--control", type=int, required=True, metavar="PORT", help="where the server listens")
    parser.add_argument("--token", default="", help="what it knows its processes by")
    options = parser.parse_args(arguments)
    try:
        sock = socket.create_connection(("127.0.0.1", options.control), 10.0)
    except OSError as error:
        sys.stderr.write("the server behind this process does not run: {}\n".format(error))
        sys.exit(1)
    sock.settimeout(None)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    Relay(sock, options.token).run()


if __name__ == "__main__":
    main()
