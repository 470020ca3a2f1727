"""All clients of the legacy era (basic/transports of 2025-11-25, "Session Management")."""

import threading
from typing import Callable, Dict, List, Optional

from .session import Session
from .streams import Streams


class Gone(Exception):
    """There is no session with that id (any more): an HTTP error of that status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Sessions:
    """All legacy sessions of one server.

    :param assigned: whether sessions have ids; without them every client is the same to the server.
    :param make_id: makes the id of a new session.
    :param list_changed: whether clients are told that lists have changed.
    :param streams: who listens.

    Threads: any thread may call any method.
    """

    def __init__(self, assigned: bool, make_id: Callable[[], str], list_changed: bool, streams: Streams) -> None:
        self._streams = streams
        self._assigned = assigned
        self._make_id = make_id
        self._list_changed = list_changed
        self._changed = threading.Condition(threading.Lock())
        # Guarded by _changed; in the order of beginning:
        self._sessions: Dict[Optional[str], Session] = {}
        self._status_of_unknown = 404

    def new(self, principal: Optional[str]) -> Session:
        """Begin a session; without ids it takes the place of the one before, and keeps its streams."""
        session = Session(self._make_id() if self._assigned else None, principal, self._list_changed)
        with self._changed:
            if session.id is None:
                session = self._sessions.get(None, session)
            self._sessions[session.id] = session
            self._changed.notify_all()
        return session

    def get(self, id: Optional[str]) -> Session:
        """The session with that id.

        :raises Gone: there is none.
        """
        with self._changed:
            if not self._assigned:
                return self._sessions.setdefault(None, Session(None, None, self._list_changed))
            session = self._sessions.get(id)
            if session is None:
                raise Gone(self._status_of_unknown)
            return session

    def remove(self, session: Session) -> None:
        """That session is over, and its streams end."""
        with self._changed:
            if self._sessions.get(session.id) is session:
                del self._sessions[session.id]
            self._changed.notify_all()
        self._end(session, True)

    def expire(self, status: int, end_streams: bool) -> None:
        """Forget every session.

        :param status: the HTTP status for those who still use one.
        :param end_streams: whether their streams end.
        """
        with self._changed:
            sessions = list(self._sessions.values())
            self._sessions = {}
            self._status_of_unknown = status
            self._changed.notify_all()
        for session in sessions:
            self._end(session, end_streams)

    def _end(self, session: Session, end_streams: bool) -> None:
        streams = session.end()
        parked = session.unpark()
        if parked is not None:
            self._streams.discard(parked)
        if end_streams:
            for stream in streams:
                stream.end("eof")

    def all(self) -> List[Session]:
        """Every session, the oldest first."""
        with self._changed:
            return list(self._sessions.values())

    def find(self, id: Optional[str], timeout: float) -> Session:
        """The session with that id, or the one that began last.

        :param timeout: seconds to wait for it.
        :raises TimeoutError: there was none.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._sessions if id is None else id in self._sessions, timeout):
                raise TimeoutError("there is no session {} after {} s".format("" if id is None else repr(id), timeout))
            return list(self._sessions.values())[-1] if id is None else self._sessions[id]
