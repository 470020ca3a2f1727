"""What was sent on a stream that can be resumed, and sending it again.

Page: basic/transports of 2025-11-25, "Resumability and Redelivery".
"""

import threading
from typing import List, Optional, Set, Tuple

from .protocol import Item, Message, encode
from .streams import Stream
from .waiting import Waiting


class EventLog:
    """The events of one stream. The id of an event names the stream and the place of the event in it.

    :param key: names the stream among those of its session.

    Threads: any thread may call any method.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        self._lock = threading.Lock()
        # Guarded by _lock:
        self._events: List[bytes] = []
        self._finished = False
        self._readers: Set[Waiting] = set()

    def prime(self, retry_ms: Optional[int]) -> bytes:
        """An event without a message: an id to resume from, and when to do that.

        :param retry_ms: ``retry``, in milliseconds; ``None`` leaves it out.
        """
        return self._add(b"" if retry_ms is None else b"retry: %d\n" % retry_ms, b"")

    def add(self, message: Message) -> bytes:
        """A message as an event that has an id."""
        return self._add(b"event: message\n", encode(message))

    def _add(self, field: bytes, data: bytes) -> bytes:
        with self._lock:
            head = "id: {}-{}\n".format(self.key, len(self._events)).encode("ascii")
            event = head + field + (b"data: " + data if data else b"data:") + b"\n\n"
            self._events.append(event)
            readers = list(self._readers)
        for reader in readers:
            reader.wake()
        return event

    def finish(self) -> None:
        """There will be no more events."""
        with self._lock:
            self._finished = True
            readers = list(self._readers)
        for reader in readers:
            reader.wake()

    def after(self, number: int) -> Tuple[List[bytes], bool]:
        """The events after that one, and whether these are all that there will be."""
        with self._lock:
            return self._events[number + 1:], self._finished

    def read_by(self, reader: Waiting) -> None:
        """Wake this one whenever there is more."""
        with self._lock:
            self._readers.add(reader)

    def left_by(self, reader: Waiting) -> None:
        """Wake this one no more."""
        with self._lock:
            self._readers.discard(reader)


def parse_event_id(event_id: str) -> Tuple[str, int]:
    """The key and the number in an id.

    :raises ValueError: this is not an id of ours.
    """
    key, _, number = event_id.rpartition("-")
    return key, int(number)


class Replay(Stream):
    """The rest of a stream that answered a POST, on the GET that resumes it.

    :param log: the events.
    :param number: the last one that the client has seen.
    :param principal: whose they are.
    :param wire: the connection that they are sent on.
    """

    listens = False

    def __init__(self, log: EventLog, number: int, principal: Optional[str], wire: Waiting) -> None:
        super().__init__({}, principal, 0, wire, None, {})
        self._log = log
        self._number = number
        self._reader = wire
        log.read_by(wire)

    def take(self) -> Tuple[List[Item], Optional[str]]:
        """What to send next, and how to end when that was all."""
        events, finished = self._log.after(self._number)
        self._number += len(events)
        items: List[Item] = list(events)
        with self._lock:
            return items, None if items else self._ending or ("eof" if finished else None)

    def gone(self) -> None:
        """Nobody reads here any more."""
        self._log.left_by(self._reader)

    def farewell(self, how: str) -> List[Item]:
        """Nothing: the response was the last word."""
        return []
