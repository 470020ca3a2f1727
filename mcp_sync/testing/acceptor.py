"""The listening socket and the thread that accepts connections on it."""

import selectors
import socket
import threading
import time
from typing import Callable

from .wire import Selector

_RETRY_SECONDS = 0.02


class Acceptor:
    """Listens on an address from construction until :meth:`close`.

    :param host: address or name to listen on.
    :param port: TCP port, 0 for a free one.
    :param accepted: called in the acceptor's thread with every new connection.
    :param patience: seconds for which a port that is still taken is asked for again.
    :raises OSError: the address cannot be had.

    Threads: :meth:`close` is for any thread but the acceptor's own.
    """

    def __init__(self, host: str, port: int, accepted: Callable[[socket.socket], None], patience: float) -> None:
        self._accepted = accepted
        self._listener = _listen(host, port, patience)
        self.port: int = self._listener.getsockname()[1]
        self._bell, self._button = socket.socketpair()
        self._thread = threading.Thread(
            target=self._run, name="mcp_sync-testing-acceptor-{}".format(self.port), daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with Selector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._bell, selectors.EVENT_READ)
            while True:
                ready = [key.fileobj for key, _ in selector.select()]
                if self._bell in ready:
                    return
                try:
                    sock, _ = self._listener.accept()
                except OSError:
                    continue  # the client was gone before we came to it
                self._accepted(sock)

    def close(self) -> None:
        """Stop listening: the port refuses connections when this returns, those that nobody accepted are reset."""
        self._button.send(b"!")
        self._thread.join(5.0)
        self.forget()

    def forget(self) -> None:
        """Drop the descriptors: for a forked child, whose parent goes on listening."""
        for sock in (self._listener, self._bell, self._button):
            sock.close()


def _listen(host: str, port: int, patience: float) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    end = time.monotonic() + patience
    while True:
        listener = socket.socket(family, kind, protocol)
        try:
            # A restart must not wait for the last connections of the time before to be forgotten by the kernel.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(128)
            listener.setblocking(False)
            return listener
        except OSError:
            listener.close()
            if time.monotonic() >= end:
                raise
        # While a server is down its port is free, and the kernel may lend it for a moment to an outgoing connection.
        threading.Event().wait(_RETRY_SECONDS)
