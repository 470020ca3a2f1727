"""One client of the legacy era: what it told when it began, what it subscribed to, and what it is told.

Pages (revision 2025-11-25): basic/lifecycle, basic/transports ("Session Management"), server/resources
("Subscriptions").
"""

import itertools
import json
import threading
from typing import Callable, Dict, List, Optional, Set

from .protocol import RESOURCE_UPDATED, Item, Message, RequestId, request
from .questions import Question
from .resumption import EventLog
from .streams import Notice, Stream
from .waiting import Waiting


class Session:
    """What one client and this server have in common, from ``initialize`` on.

    :param id: its id, ``None`` where the server assigns none.
    :param principal: whose session it is.
    :param list_changed: whether it is told that lists have changed.

    Threads: any thread may call any method.
    """

    def __init__(self, id: Optional[str], principal: Optional[str], list_changed: bool) -> None:
        self.id = id
        self.principal = principal
        self._list_changed = list_changed
        self._changed = threading.Condition(threading.Lock())
        # Guarded by _changed:
        self._version: Optional[str] = None
        self._client: Message = {}
        self._uris: Set[str] = set()
        self._streams: List["SessionStream"] = []
        self._ids = itertools.count()
        self._questions: Dict[str, Question] = {}
        self._logs: Dict[str, EventLog] = {}
        self._parked: Optional["SessionStream"] = None
        self._over = False
        self._log_level: Optional[str] = None
        self._under_way: Dict[str, Callable[[], None]] = {}

    # -- what the client said ------------------------------------------------------------------------------------

    def begin(self, version: str, client: Message) -> None:
        """The client has been told which version it is to speak.

        :param client: the params of its ``initialize``.
        """
        with self._changed:
            self._version, self._client = version, client

    @property
    def version(self) -> Optional[str]:
        """The version that was agreed upon, ``None`` before that."""
        with self._changed:
            return self._version

    @property
    def client(self) -> Message:
        """The params of the client's ``initialize``: its capabilities, its name."""
        with self._changed:
            return self._client

    def set_log_level(self, level: Optional[str]) -> None:
        """Send this client log messages from that level on."""
        with self._changed:
            self._log_level = level

    @property
    def log_level(self) -> Optional[str]:
        """From which level on this client wants log messages; ``None`` before it has said so."""
        with self._changed:
            return self._log_level

    def began(self, id: RequestId, cancel: Callable[[], None]) -> None:
        """A request of this client's is under way.

        :param cancel: called when the client does not want its answer any more.
        """
        with self._changed:
            self._under_way[_key(id)] = cancel

    def ended(self, id: RequestId, cancel: Callable[[], None]) -> None:
        """That request has been answered, or never will be."""
        with self._changed:
            if self._under_way.get(_key(id)) == cancel:
                del self._under_way[_key(id)]

    def cancel(self, id: RequestId) -> None:
        """The client has cancelled a request; one that is not under way is nobody's concern."""
        with self._changed:
            cancel = self._under_way.pop(_key(id), None)
        if cancel is not None:
            cancel()

    def subscribe(self, uri: str) -> None:
        """Tell this client about changes of a URI."""
        with self._changed:
            self._uris.add(uri)
            self._changed.notify_all()

    def unsubscribe(self, uri: str) -> None:
        """Tell this client about changes of a URI no more."""
        with self._changed:
            self._uris.discard(uri)
            self._changed.notify_all()

    @property
    def uris(self) -> Set[str]:
        """The URIs that this client is subscribed to."""
        with self._changed:
            return set(self._uris)

    def covers(self, method: str, uri: Optional[str]) -> bool:
        """Whether this client is to be told."""
        with self._changed:
            if method == RESOURCE_UPDATED:
                return uri in self._uris
            # Nobody is told anything before the handshake; without sessions the server does not know who has done it.
            return self._list_changed and (self._version is not None or self.id is None)

    # -- its streams ---------------------------------------------------------------------------------------------

    def open(self, stream: "SessionStream", alone: bool, patience: float) -> bool:
        """Send what is for this client on that stream from now on.

        :param alone: whether there may be one such stream only.
        :param patience: seconds for which the end of the one before is waited for: its client may have closed it just
            now.
        :returns: whether it may.
        """
        with self._changed:
            if alone and not self._changed.wait_for(lambda: not self._streams, patience):
                return False
            self._streams.append(stream)
            self._changed.notify_all()
            return True

    def left(self, stream: "SessionStream") -> None:
        """That stream is over."""
        with self._changed:
            if stream in self._streams:
                self._streams.remove(stream)
            self._changed.notify_all()

    def end(self) -> List["SessionStream"]:
        """Nothing of this session can be resumed any more.

        :returns: its open streams.
        """
        with self._changed:
            self._over = True
            return list(self._streams)

    def new_log(self) -> EventLog:
        """A log for one more stream that can be resumed."""
        with self._changed:
            log = EventLog(str(len(self._logs)))
            self._logs[log.key] = log
            return log

    def log(self, key: str) -> Optional[EventLog]:
        """The log of that name."""
        with self._changed:
            return self._logs.get(key)

    def park(self, stream: "SessionStream") -> bool:
        """The connection of that stream has ended: keep it for the client that resumes it.

        :returns: whether it may be resumed.
        """
        with self._changed:
            if self._over:
                return False
            self._parked = stream
            return True

    def resume(self, log: EventLog, wire: Waiting, patience: float) -> Optional["SessionStream"]:
        """Go on with the stream that has that log, on another connection.

        :param patience: seconds for which the end of its connection is waited for.
        :returns: ``None`` if none waits for that.
        """
        with self._changed:
            self._changed.wait_for(lambda: not self._sends_on_locked(log), patience)
            stream = self._parked
            if stream is None or stream.log is not log or self._sends_on_locked(log):
                return None
            self._parked = None
            self._streams.append(stream)
        stream.attach(wire)
        return stream

    def sends_on(self, log: EventLog) -> bool:
        """Whether an open stream of this session has that log."""
        with self._changed:
            return self._sends_on_locked(log)

    def _sends_on_locked(self, log: EventLog) -> bool:
        return any(stream.log is log for stream in self._streams)

    def unpark(self) -> Optional["SessionStream"]:
        """The stream that waits for its client; it waits no more, and what it has not sent is lost."""
        with self._changed:
            parked, self._parked = self._parked, None
        if parked is not None and parked.log is not None:
            parked.log.finish()
        return parked

    # -- what the server asks ------------------------------------------------------------------------------------

    def question(self, method: str, params: Optional[Message]) -> Question:
        """A request to this client; the caller sends it. Ids count from 0."""
        with self._changed:
            question = Question(request(next(self._ids), method, params))
            self._questions[_key(question.message["id"])] = question
            return question

    def resolve(self, answer: Message) -> bool:
        """The client has sent a response.

        :returns: whether it answers something that was asked.
        """
        with self._changed:
            question = self._questions.pop(_key(answer["id"]), None)
        if question is not None:
            question.resolve(answer)
        return question is not None

    def send(self, item: Item, timeout: float) -> None:
        """Put something on the standalone stream, when there is one.

        :param timeout: seconds to wait for it.
        :raises TimeoutError: there was none.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._streams, timeout):
                raise TimeoutError("the client has opened no stream to receive {!r} within {} s".format(item, timeout))
            stream = self._streams[-1]
        stream.send(item)


def _key(id: RequestId) -> str:
    return json.dumps(id)  # 0, "0", 0.0 and False are four ids


class SessionStream(Stream):
    """What a client of the legacy era is told: the GET stream, or all that goes over a shared channel.

    :param session: whose it is; it knows what the client is subscribed to.
    :param log: where its events are kept, if it can be resumed.
    """

    def __init__(self, session: Session, backlog: int, wire: Waiting, log: Optional[EventLog] = None) -> None:
        super().__init__({"everything": True}, session.principal, backlog, wire, None, {})
        self._session = session
        self.log = log
        self._with_meta = False
        self.lasting = log is not None

    def attach(self, wire: Waiting) -> None:
        """The client has resumed it on that connection."""
        with self._lock:
            self._wire = wire
            self._ending = None

    def logged(self, items: List[Item]) -> List[Item]:
        """Messages as events that have an id, if it can be resumed."""
        log = self.log
        return [item if log is None or isinstance(item, bytes) else log.add(item) for item in items]

    def parked(self) -> bool:
        """Its connection has ended: whether it waits for another one."""
        return self.log is not None and self._session.park(self)

    def notify(self, method: str, uri: Optional[str], times: int, as_uri: Optional[str]) -> None:
        """Queue a notification, if the session is to be told."""
        if self._session.covers(method, uri):
            super().notify(method, uri, times, as_uri)

    def _covered_locked(self, method: str, uri: Optional[str]) -> bool:
        return bool(self._covers)

    def _message_locked(self, note: Notice) -> Message:
        message = super()._message_locked(note)
        if not message["params"]:
            del message["params"]
        return message

    def gone(self) -> None:
        """The session may have another."""
        self._session.left(self)

    def farewell(self, how: str) -> List[Item]:
        """The last things to send: a stream without a request has no result, no error, and cannot be cancelled."""
        return super().farewell(how) if how == "half_event" else []
