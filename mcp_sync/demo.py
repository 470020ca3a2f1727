"""The whole story in a few seconds: a server in this process, a client beside it, what happens in real life, and a
check of each claim. ``mcp-sync demo`` prints it.

Nothing here depends on luck: gates at the server put things in order, and every wait is for an event and has a limit.
"""

import contextlib
import dataclasses
import threading
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ._deadline import Deadline, monotonic
from ._worker import Worker
from .client import Client
from .errors import TransportError
from .results import ReadResourceResult
from .status import State
from .testing import Server
from .watch import Watch

__all__ = ["Check", "Counts", "Step", "Story"]

CONFIG = "docs://service/config"
MANUAL = "docs://service/manual"
NOTES = "docs://my/notes"

#: The longest that anything is waited for, in seconds. Only a failure takes so long.
_WAIT = 10.0
#: The longest single wait, in seconds, since Windows tells of Ctrl-C only between two.
_SLICE = 0.25
#: How many reads show that memory is asked and not the server.
_MANY = 1000


@dataclass(frozen=True)
class Check:
    """One claim, and whether it is so."""

    ok: bool
    told: str


@dataclass
class Counts:
    """What was done so far.

    :param reads: reads that the program made.
    :param from_memory: those of them that were answered by a copy read before.
    :param requests: reads that reached a server, the program's and those made to keep copies current.
    :param changes: changes that were made at the servers.
    :param seconds: how long it took.
    """

    reads: int = 0
    from_memory: int = 0
    requests: int = 0
    changes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Step:
    """One part of the story, after it happened, or did not.

    :param number: from 1.
    :param title: what it shows.
    :param checks: what happened.
    :param seconds: how long it took.
    :param counts: what was done so far.
    """

    number: int
    title: str
    checks: Tuple[Check, ...]
    seconds: float
    counts: Counts

    @property
    def ok(self) -> bool:
        """Whether all of it happened."""
        return bool(self.checks) and all(check.ok for check in self.checks)

    def to_json(self) -> Dict[str, Any]:
        """Return it as plain values."""
        return {
            "step": self.number,
            "title": self.title,
            "ok": self.ok,
            "checks": [{"ok": check.ok, "told": check.told} for check in self.checks],
            "seconds": round(self.seconds, 3),
            "reads": self.counts.reads,
            "from_memory": self.counts.from_memory,
            "requests": self.counts.requests,
            "changes": self.counts.changes,
        }


class _Reading:
    """A read in a thread of its own."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.ended = threading.Event()
        self.text: Optional[str] = None
        Worker("mcp_sync-demo-reading", self._read).start()

    def _read(self) -> None:
        try:
            self.text = self._client.read_resource(CONFIG, cache_mode="refresh").text
        finally:
            self.ended.set()


class Story:
    """The story. :meth:`play` it once, in one thread."""

    def __init__(self) -> None:
        self.counts = Counts()
        self._servers: List[Server] = []

    def play(self) -> Iterator[Step]:
        """Yield each step once it has happened, or failed; a failure does not keep the others from being tried."""
        began = monotonic()
        with contextlib.ExitStack() as stack:
            server = stack.enter_context(self._server())
            server.add(CONFIG, "colour = blue", mime_type="text/plain")
            server.add(MANUAL, "Turn the knob.", mime_type="text/plain")
            # No pause between two reads of one resource, since the story is short.
            client = stack.enter_context(Client(server.url, throttle=0.0, timeout=_WAIT))
            watch = stack.enter_context(client.watch(CONFIG, MANUAL))
            main = (server, client, watch)
            parts: List[Tuple[str, Iterator[Check]]] = [
                ("A resource is read once, and then comes from memory", self._memory(*main)),
                ("The server changes it: the copy is renewed without being asked for", self._change(*main)),
                ("A late answer, overtaken by a change, is not taken for new", self._late_answer(*main)),
                ("The server dies, and a change is missed: nothing old passes for new", self._outage(*main)),
                ("A server that cannot tell of changes is asked again and again", self._polling()),
                ("Two users share one client, and neither sees the other's copy", self._principals()),
                ("A long task keeps one version, and learns what has moved since", self._snapshot(*main)),
            ]
            for number, (title, part) in enumerate(parts, 1):
                step_began = monotonic()
                checks: List[Check] = []
                try:
                    for check in part:
                        checks.append(check)
                except Exception as error:
                    # The boundary of a step: whatever it was, it did not happen as told.
                    checks.append(Check(False, "%s: %s" % (type(error).__name__, error)))
                self.counts.requests = sum(one.count("resources/read") for one in self._servers)
                self.counts.seconds = monotonic() - began
                yield Step(number, title, tuple(checks), monotonic() - step_began, dataclasses.replace(self.counts))

    # -- the steps -----------------------------------------------------------------------------------------------------

    def _memory(self, server: Server, client: Client, watch: Watch) -> Iterator[Check]:
        watch.wait_until_current(_WAIT)
        asked = server.count("resources/read", CONFIG)
        first = self._read(client, CONFIG, cache_mode="refresh")
        yield Check(
            server.count("resources/read", CONFIG) == asked + 1, "the server was asked, and said: %s" % first.text
        )
        again = {self._read(client, CONFIG).text for _ in range(_MANY)}
        yield Check(
            again == {first.text} and server.count("resources/read", CONFIG) == asked + 1,
            "%d more reads said the same, and the server was not asked" % _MANY,
        )

    def _change(self, server: Server, client: Client, watch: Watch) -> Iterator[Check]:
        asked = server.count("resources/read", CONFIG)
        self._update(server, "colour = red")
        yield Check(
            _sees(watch, "colour = red"),
            "the server changed it to: colour = red; the client heard of it, and read it again",
        )
        now = self._read(client, CONFIG)
        yield Check(
            now.text == "colour = red" and server.count("resources/read", CONFIG) == asked + 1,
            "the program's next read said: %s, from memory" % now.text,
        )

    def _late_answer(self, server: Server, client: Client, watch: Watch) -> Iterator[Check]:
        # The gate stands behind the place where the server looks the text up.
        with server.hold("resources/read", CONFIG, at="answer") as gate:
            late = _Reading(client)
            gate.wait_reached(1, _WAIT)
            self._update(server, "colour = green")
            # The second to come there is the client's own read, so the client has heard of the change.
            gate.wait_reached(2, _WAIT)
            gate.release(1)
            late.ended.wait(_WAIT)
            self.counts.reads += 1
            yield Check(
                late.text == "colour = red",
                "a read that began before a change ended after it, with the text of before: %s" % late.text,
            )
            held = self._read(client, CONFIG, stale_ok=True, timeout=0)
            yield Check(
                held.stale and not watch.is_current, "it was not kept as new: the copy in memory is labelled stale"
            )
        watch.wait_until_current(_WAIT)
        asked = server.count("resources/read", CONFIG)
        now = self._read(client, CONFIG)
        yield Check(
            now.text == "colour = green" and not now.stale and server.count("resources/read", CONFIG) == asked,
            "the next read said: %s, from memory" % now.text,
        )

    def _outage(self, server: Server, client: Client, watch: Watch) -> Iterator[Check]:
        _forget_changes(watch)
        server.kill()
        watch.wait_for_state(State.INTERRUPTED, _WAIT)
        self._update(server, "colour = yellow")
        self.counts.reads += 1
        try:
            refused = client.read_resource(CONFIG).text
        except TransportError:
            refused = "an error"
        yield Check(
            refused == "an error", "the server is gone, and its text changes unheard; a read gives: %s" % refused
        )
        old = self._read(client, CONFIG, stale_ok=True)
        yield Check(
            old.stale and old.text == "colour = green",
            "a read that takes old copies gives: %s, labelled stale" % old.text,
        )
        server.restart()
        yield Check(
            _sees(watch, "colour = yellow"), "the server is back; the client listens again, and reads all again"
        )
        watch.wait_until_current(_WAIT)
        now = self._read(client, CONFIG)
        yield Check(now.text == "colour = yellow" and not now.stale, "the next read said: %s, from memory" % now.text)

    def _polling(self) -> Iterator[Check]:
        with self._server(subscribe=False, list_changed=False) as server:
            server.add(CONFIG, "colour = blue")
            with Client(server.url, poll_interval=0.2, throttle=0.0) as client, client.watch(CONFIG) as watch:
                watch.wait_until_current(_WAIT)
                status = watch.status
                yield Check(
                    status.state is State.POLLING and server.count("subscriptions/listen") == 0,
                    "the server says that it cannot tell of changes; the watch is %s" % status.state.value,
                )
                self._update(server, "colour = white")
                yield Check(_sees(watch, "colour = white"), "the change to: colour = white was seen all the same")

    def _principals(self) -> Iterator[Check]:
        tokens = {"Bearer of-ann": "ann", "Bearer of-bob": "bob"}

        # The copies count as new for a minute, so the second read of each comes from memory.
        with self._server(authenticate=lambda headers: tokens.get(headers["Authorization"]), ttl_ms=60000) as server:
            server.add(NOTES, lambda principal: "the notes of %s" % principal)
            ann_headers, bob_headers = {"Authorization": "Bearer of-ann"}, {"Authorization": "Bearer of-bob"}
            with Client(server.url, headers=ann_headers, principal="ann") as ann:
                bob = ann.as_principal("bob", headers=bob_headers)
                for name, client in (("ann", ann), ("bob", bob)):
                    texts = [self._read(client, NOTES).text for _ in range(2)]
                    yield Check(
                        texts == ["the notes of %s" % name] * 2, "%s read twice: %s" % (name, " / ".join(texts))
                    )
                asked = server.count("resources/read", NOTES)
                yield Check(asked == 2, "the server was asked %d times, once by each" % asked)

    def _snapshot(self, server: Server, client: Client, watch: Watch) -> Iterator[Check]:
        watch.wait_until_current(_WAIT)
        _forget_changes(watch)
        pinned = watch.snapshot()
        before = pinned[CONFIG].text
        yield Check(pinned.is_current(), "a task pinned %d resources; nothing has moved" % len(pinned))
        self._update(server, "colour = black")
        seen = _sees(watch, "colour = black")
        yield Check(seen and pinned[CONFIG].text == before, "the server changed one; the task still sees: %s" % before)
        watch.wait_until_current(_WAIT)
        moved = [change.uri for change in pinned.moved()]
        yield Check(moved == [CONFIG], "the task asks what has moved, and is told: %s" % ", ".join(map(str, moved)))

    # -- what they have in common --------------------------------------------------------------------------------------

    def _server(self, **options: Any) -> Server:
        server = Server(**options)
        self._servers.append(server)
        return server

    def _update(self, server: Server, text: str) -> None:
        self.counts.changes += 1
        server.update(CONFIG, text)

    def _read(self, client: Client, uri: str, **options: Any) -> ReadResourceResult:
        began = monotonic()
        result = client.read_resource(uri, **options)
        self.counts.reads += 1
        # What was read from the server before this read began was in memory.
        self.counts.from_memory += result.started < began
        return result


def _sees(watch: Watch, text: str) -> bool:
    """Wait for the change to this text, and return whether it came."""
    deadline = Deadline(_WAIT)
    while not deadline.expired:
        for change in watch.changes(timeout=deadline.shorter(_SLICE)):
            if isinstance(change.current, ReadResourceResult) and change.current.text == text:
                return True
    return False


def _forget_changes(watch: Watch) -> None:
    for _ in watch.changes(timeout=0):
        pass
