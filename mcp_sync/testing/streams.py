"""Open streams of notices: what each one asked for, and what waits to be sent on it.

A stream answers a ``subscriptions/listen`` (basic/patterns/subscriptions); those of the legacy era are made of the same
(see :mod:`mcp_sync.testing.session`). Whoever changes something only puts a note into a queue here; the thread that
serves the stream turns notes into bytes, many at a time. So a change never waits for a slow client, and a burst of
a hundred thousand notices costs a few hundred system calls.
"""

import collections
import threading
from typing import Deque, FrozenSet, List, NamedTuple, Optional, Set, Tuple, Union

from .protocol import (
    CANCELLED,
    FILTER_FIELDS,
    INTERNAL_ERROR,
    META_SUBSCRIPTION_ID,
    RESOURCE_UPDATED,
    TASK_CHANGED,
    Item,
    Message,
    RequestId,
    encode,
    error_response,
    notification,
    result_response,
)
from .waiting import Waiting

#: How a stream may end, from kind to cruel.
ENDINGS = ("result", "eof", "error", "cancelled", "half_event", "cut", "reset")

# How many notices are joined into one system call.
_BATCH = 500


class Notice(NamedTuple):
    """A notification that waits to be sent, before it has got its subscription's id."""

    method: str
    uri: Optional[str]
    as_uri: Optional[str]
    times: int


class Stream:
    """One listen stream, from the answer to its request to its end.

    :param covers: the filter that the server agreed to honour.
    :param principal: whose stream it is.
    :param backlog: how many notices may wait; one more and the stream ends gracefully, as real servers do.
    :param wire: the connection that it is sent on.
    :param request_id: the id of the listen request, which every message carries as the subscription's id, with the
        JSON type that the client gave it.
    :param goodbye: what a graceful end says besides the subscription's id.

    Threads: any thread may call any method; :meth:`take` is for the one that sends.
    """

    #: Whether it counts as one that listens for changes.
    listens = True
    #: Whether it collects notices when its connection has ended.
    lasting = False

    def __init__(self, covers: Message, principal: Optional[str], backlog: int, wire: Waiting, request_id: RequestId,
                 goodbye: Message) -> None:
        self.principal = principal
        self._goodbye = goodbye
        self._backlog = backlog
        self._wire = wire
        self._lock = threading.Lock()
        # Guarded by _lock:
        self._subscription_id = request_id
        self._with_meta = True
        self._covers = covers
        self._uris = _uris(covers)
        self._queue: Deque[Union[Notice, Item]] = collections.deque()
        self._waiting = 0
        self._ending: Optional[str] = None

    def relabel(self, subscription_id: RequestId, with_meta: bool = True) -> None:
        """Name another subscription in every message, or none at all."""
        with self._lock:
            self._subscription_id = subscription_id
            self._with_meta = with_meta

    def narrow(self, covers: Message) -> None:
        """Honour another filter from now on; what waits and is not covered any more is dropped."""
        with self._lock:
            self._covers, self._uris = covers, _uris(covers)
            kept = [note for note in self._queue
                    if not isinstance(note, Notice) or self._covered_locked(note.method, note.uri)]
            self._queue = collections.deque(kept)
            self._waiting = sum(note.times if isinstance(note, Notice) else 1 for note in kept)

    def _covered_locked(self, method: str, uri: Optional[str]) -> bool:
        if method == RESOURCE_UPDATED:
            return uri in self._uris
        return self._covers.get(FILTER_FIELDS[method]) is True

    def notify(self, method: str, uri: Optional[str], times: int, as_uri: Optional[str]) -> None:
        """Queue a notification, if this stream asked for it and was told that it gets it."""
        with self._lock:
            if not self._covered_locked(method, uri):
                return
            self._put_locked(Notice(method, uri, as_uri, times), times)
        self._wire.wake()

    def notify_task(self, task_id: str, detail: Message) -> None:
        """Queue what a task is now, if this stream asked for that task."""
        with self._lock:
            if task_id not in self._covers.get("taskIds", ()):
                return
            meta = {"_meta": {META_SUBSCRIPTION_ID: self._subscription_id}} if self._with_meta else {}
            self._put_locked(notification(TASK_CHANGED, dict(detail, **meta)), 1)
        self._wire.wake()

    def send(self, item: Item) -> None:
        """Queue a message, or bytes, exactly as they are."""
        with self._lock:
            self._put_locked(item, 1)
        self._wire.wake()

    def _put_locked(self, note: Union[Notice, Item], times: int) -> None:
        if self._ending is not None and not self.lasting:
            return
        if self._waiting + times > self._backlog:
            self._ending = "result"
            return
        self._waiting += times
        last = self._queue[-1] if self._queue else None
        if isinstance(note, Notice) and isinstance(last, Notice) and last._replace(times=times) == note:
            self._queue[-1] = last._replace(times=last.times + times)  # a burst takes no more room than one notice
        else:
            self._queue.append(note)

    def end(self, how: str) -> None:
        """End this stream: by a reset now, else after what waits has been sent. The first ending asked for counts."""
        with self._lock:
            if self._ending is None:
                self._ending = how
        if how == "reset":
            self._wire.ask_reset()  # a thread that is stuck in a send to a client that does not read hears this only
        else:
            self._wire.wake()

    def take(self) -> Tuple[List[Item], Optional[str]]:
        """What to send next, and, once nothing is left, how to end. Repeated notices are one object, many times."""
        batch: List[Item] = []
        with self._lock:
            while self._queue and len(batch) < _BATCH:
                note = self._queue.popleft()
                if not isinstance(note, Notice):
                    self._waiting -= 1
                    batch.append(note)
                    continue
                count = min(note.times, _BATCH - len(batch))
                self._waiting -= count
                batch.extend([self._message_locked(note)] * count)
                if count < note.times:
                    self._queue.appendleft(note._replace(times=note.times - count))
            return batch, None if self._queue else self._ending

    def _message_locked(self, note: Notice) -> Message:
        params: Message = {}
        if self._with_meta:
            params["_meta"] = {META_SUBSCRIPTION_ID: self._subscription_id}
        if note.method == RESOURCE_UPDATED:
            params["uri"] = note.uri if note.as_uri is None else note.as_uri
        return notification(note.method, params)

    def logged(self, items: List[Item]) -> List[Item]:
        """What is to be sent, as it goes out."""
        return items

    def gone(self) -> None:
        """Its connection has ended, or is about to."""

    def parked(self) -> bool:
        """Its connection has ended: whether it waits for another one."""
        return False

    def farewell(self, how: str) -> List[Item]:
        """The last things to send before an ending of that kind.

        :param how: one of :data:`ENDINGS`.
        """
        with self._lock:
            subscription_id, with_meta = self._subscription_id, self._with_meta
        if how == "result":
            meta = dict(self._goodbye["_meta"], **({META_SUBSCRIPTION_ID: subscription_id} if with_meta else {}))
            return [result_response(subscription_id, dict(self._goodbye, _meta=meta))]
        if how == "error":
            return [error_response(subscription_id, INTERNAL_ERROR, "the subscription ended with an error")]
        if how == "cancelled":
            meta = {META_SUBSCRIPTION_ID: subscription_id} if with_meta else {}
            params = {"_meta": meta, "requestId": subscription_id, "reason": "ended by the server"}
            return [notification(CANCELLED, params)]
        if how == "half_event":
            whole = encode(notification(RESOURCE_UPDATED, {"uri": "half://of/an/event"}))
            return [b"event: message\ndata: " + whole[:len(whole) // 2]]
        return []


def _uris(covers: Message) -> FrozenSet[str]:
    return frozenset(covers.get("resourceSubscriptions", ()))


class Streams:
    """All listen streams of one server.

    Threads: any thread may call any method.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        # Guarded by _changed:
        self._known: Set[Stream] = set()
        self._open: Set[Stream] = set()

    def add(self, stream: Stream, limit: Optional[int]) -> bool:
        """Let a stream receive notices from now on.

        This is before it is acknowledged, and what is queued is sent after the acknowledgement: no change can slip
        through between the two.

        :param limit: how many streams there may be; ``None`` for any number.
        :returns: ``False`` if that would be one too many.
        """
        with self._changed:
            if limit is not None and len(self._known) >= limit:
                return False
            self._known.add(stream)
            return True

    def opened(self, stream: Stream) -> None:
        """Its acknowledgement is on the wire."""
        with self._changed:
            self._open.add(stream)
            self._changed.notify_all()

    def leave(self, stream: Stream) -> None:
        """It is about to end: it receives nothing more, and its place is free.

        This is before its last words are sent, because the client that reads them may listen again at once.
        """
        if stream.lasting:
            return
        with self._changed:
            self._known.discard(stream)
        stream.gone()

    def discard(self, stream: Stream) -> None:
        """It has ended, or never opened."""
        with self._changed:
            self._known.discard(stream)
            self._open.discard(stream)
            self._changed.notify_all()
        stream.gone()

    def closed(self, stream: Stream) -> None:
        """Its connection has ended; it may have parked until the client resumes it."""
        if not stream.parked():
            self.discard(stream)
            return
        with self._changed:
            self._open.discard(stream)
            self._changed.notify_all()
        stream.gone()

    def all(self) -> List[Stream]:
        """Every stream that can receive notices, at this moment."""
        with self._changed:
            return list(self._known)

    def __len__(self) -> int:
        with self._changed:
            return len(self._open)

    def wait(self, count: int, timeout: float) -> bool:
        """Wait until exactly that many streams are open.

        :param timeout: seconds.
        :returns: whether that happened.
        """
        with self._changed:
            return self._changed.wait_for(lambda: len(self._open) == count, timeout)

    def wait_ended(self, streams: List[Stream], timeout: float) -> bool:
        """Wait until none of these streams is left, or has a connection."""
        lasting = {stream for stream in streams if stream.lasting}
        others = set(streams) - lasting
        with self._changed:
            return self._changed.wait_for(
                lambda: not (others & self._known or (others | lasting) & self._open), timeout)
