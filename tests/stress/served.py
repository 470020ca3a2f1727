"""The servers that a soak reads from: how they are started and killed, and how a text of theirs is changed."""

import random
import threading
from typing import Any, List

from mcp_sync.testing import Server

from .judge import Judge, text_of

URIS = ["docs://soak/%d" % number for number in range(8)]
_ENDINGS = ("result", "eof", "error", "cancelled", "half_event", "cut", "reset")


class Served:
    """A server with the resources ``URIS``. Any thread may write; one thread starts and kills.

    :param judge: knows what is written when.
    """

    #: The least time between two restarts, in seconds.
    restart_every = 3.0
    url = ""
    port = 0

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.restarts = 0

    def start(self) -> None:
        raise NotImplementedError

    def kill(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        raise NotImplementedError

    def disturb(self, chance: random.Random) -> None:
        """Do something to those who listen, if there is a way."""

    def write(self, uri: str, chance: random.Random) -> bool:
        """Write the next version of a resource, or try again to write it; return whether that is sure now."""
        raise NotImplementedError

    def check(self) -> None:
        """Look that the judge has judged by what the server really had."""


class Embedded(Served):
    """The server of ``mcp_sync.testing``.

    :param options: as of that.
    """

    def __init__(self, judge: Judge, **options: Any) -> None:
        super().__init__(judge)
        self._server = Server(keep_alive=0.25, **options)
        for uri in URIS:
            self._server.add(uri, text_of(uri, 0), notify=False)
        self._server.start()
        self.port, self.url = self._server.port, self._server.url

    def start(self) -> None:
        self._server.start()
        self._server.forget_requests()  # of which it remembers each, and nobody asks for them
        self.restarts += 1

    def kill(self) -> None:
        self._server.kill()

    def stop(self) -> None:
        self._server.wait_for_connections(0, timeout=15.0)
        self._server.stop()

    def disturb(self, chance: random.Random) -> None:
        self._server.end_streams(chance.choice(_ENDINGS), timeout=0.0)

    def write(self, uri: str, chance: random.Random) -> bool:
        version = self.judge.write_begins(uri)
        self._server.update(uri, text_of(uri, version), notify=False)
        self.judge.write_ended(uri, version)
        # A notice may name a part of what has changed; and so each of these says of which version it is.
        self._server.notify_updated(uri, as_uri="%s#%d" % (uri, version))
        return True

    def check(self) -> None:
        for uri in URIS:
            had = self._server.history(uri)
            assert list(had) == [text_of(uri, version) for version in range(self.judge.last(uri) + 1)], uri


class Official(Served):
    """The official Python SDK's server, in a process of its own.

    :param directory: an empty directory.
    """

    restart_every = 6.0

    def __init__(self, judge: Judge, directory: Any) -> None:
        super().__init__(judge)
        from interop.real_server import RealServer

        self._server = RealServer("official-python", directory)
        for uri in URIS:
            self._server.write_state(uri, text_of(uri, 0))
        self._server.start()
        self.port, self.url = self._server.port, self._server.url
        self._lock = threading.Lock()  # held while a text is written, and while the server starts

    def start(self) -> None:
        with self._lock:
            # While it is dead things change, and nobody can say so.
            for uri in URIS[::3]:
                version = self.judge.write_begins(uri)
                self._server.write_state(uri, text_of(uri, version))
                self.judge.write_ended(uri, version)
            self._server.start()
        self.restarts += 1

    def kill(self) -> None:
        self._server.kill()

    def stop(self) -> None:
        self._server.stop()

    def write(self, uri: str, chance: random.Random) -> bool:
        with self._lock:
            version = self.judge.write_begins(uri)
            try:
                self._server.set_text(uri, text_of(uri, version))
            except Exception:
                return False  # killed, perhaps after it had written: only writing it again makes that sure
            self.judge.write_ended(uri, version)
            return True


def uris_of(writer: int, writers: int) -> List[str]:
    """The resources that one of so many writers has to itself."""
    return URIS[writer::writers]
