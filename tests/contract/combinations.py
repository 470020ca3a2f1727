"""The combinations of era and transport that the contract is held against, and what its tests do with a client."""

import queue
import threading
from typing import Any, Callable, Dict, List, Optional

from mcp_sync import Change, Client, State
from mcp_sync.testing import Server, StdioServer

CONFIG = "docs://service/config"
README = "docs://service/readme"
LIMITS = "docs://service/limits"
MISSING = "docs://service/missing"

#: Only a failure reaches it, in seconds.
BOUND = 15.0

LEGACY, MODERN = ("legacy",), ("modern",)

COMBINATIONS: Dict[str, Callable[..., Any]] = {
    "modern, HTTP": lambda **options: Server(**options),
    "modern, HTTP, answers as streams": lambda **options: Server(answer="sse", **options),
    "modern, stdio": lambda **options: StdioServer(eras=MODERN, **options),
    "legacy, HTTP, sessions": lambda **options: Server(eras=LEGACY, sessions=True, **options),
    "legacy, HTTP, sessions, answers as streams": lambda **options: Server(eras=LEGACY, answer="sse", **options),
    "legacy, HTTP, no sessions": lambda **options: Server(eras=LEGACY, sessions=False, **options),
    "legacy, HTTP+SSE": lambda **options: Server(eras=LEGACY, transport="http+sse", **options),
    "legacy, stdio": lambda **options: StdioServer(eras=LEGACY, **options),
    "both eras, HTTP": lambda **options: Server(eras=MODERN + LEGACY, **options),
    "modern, HTTP, cannot notify": lambda **options: Server(subscribe=False, list_changed=False, **options),
    "legacy, HTTP, cannot notify": lambda **options: Server(
        eras=LEGACY, subscribe=False, list_changed=False, **options
    ),
}

#: Those that tell of changes.
NOTIFYING = [name for name in COMBINATIONS if "cannot" not in name]


def client_of(server: Any, **options: Any) -> Client:
    """Return a client that wastes no time, and polls often where it has to."""
    target = server.command if isinstance(server, StdioServer) else server.url
    defaults: Dict[str, Any] = {"throttle": 0.01, "poll_interval": 0.1, "poll_after": 60.0, "timeout": BOUND}
    defaults.update(options)
    return Client(target, **defaults)


def settled(watch: Any, notifies: bool) -> None:
    """Wait until a watch is kept current in the way that its server allows."""
    watch.wait_for_state(State.LIVE if notifies else State.POLLING, timeout=BOUND)
    watch.wait_until_current(timeout=BOUND)


def next_change(watch: Any, kind: str = "updated", uri: Optional[str] = None) -> Change:
    """Return the next change of a kind, of one resource if that is said; the others are dropped."""
    for change in watch.changes(timeout=BOUND):
        if change.kind == kind and uri in (None, change.uri):
            return change  # type: ignore[no-any-return]
    raise AssertionError("no change came: %s" % watch.status)


class Changes:
    """A listener that keeps the changes that it is called with."""

    def __init__(self) -> None:
        self._got: "queue.Queue[Change]" = queue.Queue()

    def __call__(self, change: Change) -> None:
        self._got.put(change)

    def wait_for_text(self, text: str) -> Change:
        """Return the next change to that text; those before it are dropped."""
        while True:
            change = self._got.get(timeout=BOUND)
            if getattr(change.current, "text", None) == text:
                return change


class Late:
    """Something that is done in a thread of its own."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._outcome: List[Any] = []
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    def _run(self, work: Callable[[], Any]) -> None:
        try:
            self._outcome.append(work())
        except Exception as error:
            self._outcome.append(error)

    @property
    def waits(self) -> bool:
        return not self._outcome

    def result(self) -> Any:
        """Return what came of it, or raise what it raised."""
        self._thread.join(BOUND + 5.0)
        assert self._outcome, "it never ended"
        if isinstance(self._outcome[0], Exception):
            raise self._outcome[0]
        return self._outcome[0]
