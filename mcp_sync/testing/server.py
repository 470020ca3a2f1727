"""The server that tests talk to: all its parts behind one object."""

import time
import uuid
from typing import Any, Callable, Collection, Optional, Sequence, Tuple, TypeVar, Union

from .call import Fault
from .connection import Connection, HttpExchange
from .control import Control
from .exchange import Core, current
from .faults import Ask
from .functions import Functions
from .legacy import Legacy
from .lifecycle import Lifecycle
from .methods import CAPABILITIES, Methods
from .modern import Modern
from .offering import Offering
from .probe import Probe
from .protocol import Message
from .recorder import Recorder
from .request import Authenticate
from .resources import Store
from .scripting import Scripting
from .session import Session
from .sessions import Sessions
from .settings import Settings
from .sse import HttpSse
from .streamable import Streamable
from .streams import Streams
from .wire import Wire

Self = TypeVar("Self", bound="Server")
#: The versions of the legacy era.
LEGACY_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


class Server(Offering, Scripting):
    """A Model Context Protocol server over HTTP, inside the process that tests a client.

    ::

        with Server() as server:
            server.add("docs://config", "colour = blue")
            ...                                     # point the client at server.url and let it watch
            server.update("docs://config", "colour = red")
            server.kill()                           # and see what the client makes of it
            server.restart()

    Everything that the server is asked is in :attr:`requests`; everything that a resource ever was is in
    :meth:`history`. Both outlive :meth:`stop`, :meth:`kill` and :meth:`restart`, as do resources, gates and faults;
    legacy sessions do not.

    :param host: address to listen on.
    :param port: TCP port; 0 takes a free one, and a restart takes the same again.
    :param path: path of the endpoint; every other path is a 404. ``None`` for ``/mcp``, or ``/sse`` with HTTP+SSE.
    :param name: the server's name in ``serverInfo``.
    :param version: the server's version in ``serverInfo``.
    :param instructions: text for the discovery result.
    :param subscribe: whether it offers notices about single resources.
    :param list_changed: whether it offers notices about its lists.
    :param ttl_ms: ``ttlMs`` of every cacheable result, in milliseconds, sent as it is: also ``-1`` or ``"soon"``.
    :param cache_scope: ``cacheScope`` of every cacheable result, sent as it is.
    :param page_size: items on a page of a list; ``None`` sends lists whole.
    :param protocol_versions: the versions it accepts.
    :param answer: ``"json"`` or ``"sse"``: how it answers everything but a listen request.
    :param keep_alive: seconds of silence on a listen stream before a comment is sent; ``None`` sends none.
    :param authenticate: from the headers of a request to the name of its principal; ``None`` answers 401.
    :param max_streams: how many listen streams may be open; a further one is refused (HTTP 503, -32603).
    :param chunked: whether event streams are chunked; if not, the end of the connection ends them.
    :param backlog: how many notices may wait for one slow client; with one more its stream ends gracefully.
    :param transport: ``"streamable"``, or ``"http+sse"`` for the transport of 2024-11-05.
    :param eras: which eras it speaks: ``"modern"``, ``"legacy"``, or both; ``None`` for the modern one, or with
        HTTP+SSE the legacy one.
    :param legacy_versions: the versions that it agrees to in ``initialize``.
    :param sessions: whether it assigns session ids in the legacy era and insists on them.
    :param make_session_id: makes the id of a new session.
    :param get_stream: whether it offers the GET stream of the legacy era; if not, 405.
    :param resumable: whether event streams of the legacy era can be resumed: their events have ids, and the first one
        has nothing else.
    :param retry_ms: when to resume, in milliseconds, as that first event says it; ``None`` does not say.
    :param modern_probe: what a server of the legacy era alone answers to a modern request: ``"-32000"`` (400, ``id``
        is null), ``"-32600"`` (400), ``"-32601"`` (200), ``"400 empty"``, ``"400 html"``, ``"401"``, ``"404"``,
        ``"405"``, ``"result"`` (carried out as if it were a legacy request), ``"garbage"``, ``"silence"`` (until it
        stops), or a fault. With HTTP+SSE it is the answer to every POST to the path of the stream. ``None`` for
        ``"-32000"``, or ``"405"`` with HTTP+SSE.
    :param endpoint: what the first event of HTTP+SSE says: ``"relative"``, ``"absolute"``, ``"other origin"``,
        ``"missing"`` (there is no such event), or a callable that makes it from the relative name.
    :param accepted: the body of a 202 with HTTP+SSE.
    :param capabilities: what it says that it can do from the beginning, besides resources: any of ``"tools"``,
        ``"prompts"``, ``"completions"``, ``"logging"``, ``"tasks"`` and ``"skills"``. What is not named here is told as
        soon as there is something of it (``logging``: a tool or a prompt); until then its methods are not found.
    :param check_capabilities: whether it asks a client only what that has said that it can answer.
    :param check_param_headers: whether it insists on the ``Mcp-Param-*`` headers of a tool's parameters (modern era).
    :param directory_read: whether a server that has skills lets their directories be read.

    Pages: basic/transports/streamable-http, basic/patterns/subscriptions, server/resources, server/tools, server/prompts,
    server/utilities/caching;
    basic/lifecycle and basic/transports of 2025-11-25; basic/transports of 2024-11-05.

    Threads: any thread may call any method. The server's own threads are daemons.
    """

    def __init__(self, *, host: str = "127.0.0.1", port: int = 0, path: Optional[str] = None,
                 name: str = "mcp_sync-testing", version: str = "1", instructions: Optional[str] = None,
                 subscribe: bool = True, list_changed: bool = True, ttl_ms: Any = 0, cache_scope: str = "private",
                 page_size: Optional[int] = None, protocol_versions: Sequence[str] = ("2026-07-28",),
                 answer: str = "json", keep_alive: Optional[float] = 15.0,
                 authenticate: Optional[Authenticate] = None, max_streams: Optional[int] = None, chunked: bool = True,
                 backlog: int = 200000, transport: str = "streamable", eras: Optional[Collection[str]] = None,
                 legacy_versions: Sequence[str] = LEGACY_VERSIONS, sessions: bool = True,
                 make_session_id: Callable[[], str] = lambda: uuid.uuid4().hex, get_stream: bool = True,
                 resumable: bool = False, retry_ms: Optional[int] = None,
                 modern_probe: Union[str, Fault, None] = None,
                 endpoint: Union[str, Callable[[str], str]] = "relative", accepted: bytes = b"Accepted",
                 capabilities: Collection[str] = (), check_capabilities: bool = False,
                 check_param_headers: bool = True, directory_read: bool = True) -> None:
        if answer not in ("json", "sse"):
            raise ValueError('answer must be "json" or "sse", not {!r}'.format(answer))
        if transport not in ("streamable", "http+sse"):
            raise ValueError('transport must be "streamable" or "http+sse", not {!r}'.format(transport))
        old = transport == "http+sse"
        if eras is None:
            eras = ("legacy",) if old else ("modern",)
        unknown = set(capabilities) - set(CAPABILITIES)
        if unknown:
            raise ValueError("capabilities must be of {}, not {!r}".format(", ".join(CAPABILITIES), unknown))
        if not eras or not set(eras) <= ({"legacy"} if old else {"modern", "legacy"}):
            raise ValueError('eras must be "modern", "legacy" or both (HTTP+SSE: "legacy"), not {!r}'.format(eras))
        self.host = host
        self.path = path or ("/sse" if old else "/mcp")
        self._settings = Settings(
            name=name, version=version, instructions=instructions, subscribe=subscribe, list_changed=list_changed,
            ttl_ms=ttl_ms, cache_scope=cache_scope, page_size=page_size, protocol_versions=tuple(protocol_versions),
            answer=answer, keep_alive=keep_alive, max_streams=max_streams, chunked=chunked, backlog=backlog,
            eras=tuple(eras), legacy_versions=tuple(legacy_versions), sessions=sessions, get_stream=get_stream,
            resumable=resumable, retry_ms=retry_ms, capabilities=tuple(capabilities),
            check_capabilities=check_capabilities, check_param_headers=check_param_headers,
            directory_read=directory_read)
        Offering.__init__(self, Store(), Streams(), Functions())
        Scripting.__init__(self, Control(), Recorder())
        self._sessions = Sessions(sessions or old, make_session_id, list_changed, self._streams)
        methods = Methods(self._settings, self._store, self._functions, self._tasks, self._skills)
        legacy = Legacy(self._settings, methods)
        self._core = Core(
            settings=self._settings, authenticate=authenticate, legacy=legacy, streams=self._streams,
            modern=Modern(self._settings, self._store, self._streams, methods, self._tasks), sessions=self._sessions,
            control=self._control, recorder=self._recorder)
        self._probe = Probe(modern_probe or ("405" if old else "-32000"), legacy)
        if old:
            self._exchange = HttpSse(self._core, host, self.path, self._probe, endpoint, accepted).exchange
        else:
            face = Streamable(self._core, host, self.path, self._probe)
            self._exchange = lambda request, wire: HttpExchange(self._core, face, request, wire)
        self._life = Lifecycle(host, port, self._serve)

    # -- life ----------------------------------------------------------------------------------------------------

    @property
    def port(self) -> int:
        """The TCP port; before the first start, the one that was asked for."""
        return self._life.port

    @property
    def url(self) -> str:
        """The address of the endpoint, for the client."""
        return "http://{}:{}{}".format("[" + self.host + "]" if ":" in self.host else self.host, self.port, self.path)

    def start(self: Self) -> Self:
        """Listen. The port accepts connections when this returns; a server that runs already is left alone.

        :raises OSError: the address cannot be had.
        """
        self._life.start()
        return self

    def stop(self) -> None:
        """End gracefully: refuse new connections, finish answers, send each listen stream its result, close.

        What is held by a gate or a fault is answered now. What is not done after a second is reset. A server that does
        not run is left alone.
        """
        if self._life.stop():  # in a forked child there is nothing to stop, and no lock may be taken
            self._sessions.expire(404, end_streams=False)
            self._tasks.end()

    def kill(self) -> None:
        """End the way a crash does: no last words, every connection is reset, the port refuses connections."""
        if self._life.kill():
            self._sessions.expire(404, end_streams=False)
            self._tasks.end()

    def restart(self: Self) -> Self:
        """Listen on the same port again, after :meth:`stop` or :meth:`kill`; a server that runs is stopped first."""
        self.stop()
        return self.start()

    def _serve(self, wire: Wire) -> None:
        Connection(wire, self._core, self._exchange).serve()

    def __enter__(self: Self) -> Self:
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return "<mcp_sync.testing.Server {}>".format(self.url)

    # -- sessions of the legacy era ------------------------------------------------------------------------------

    def ask(self, method: str, params: Optional[Message] = None, *, on: str = "get", timeout: float = 5.0,
            session_id: Optional[str] = None) -> Message:
        """Send a client a request, and wait for its response (legacy era). Ids count from 0 in each session.

        Inside a tool, ``on="post"`` sends it on the stream of the call that the tool answers, ahead of its result. From
        any other thread it goes ahead of the answer to the next request that arrives.

        :param method: ``"ping"``, ``"roots/list"``, ``"sampling/createMessage"``, ``"elicitation/create"``, or another.
        :param on: ``"get"``, the standalone stream, or ``"post"``, the stream of an answer.
        :param timeout: seconds, for the client to open the stream and for the response together.
        :param session_id: whom to ask; ``None`` for the client that began last.
        :returns: the response, a JSON-RPC message with ``result`` or ``error``.
        :raises TimeoutError: there was none.
        """
        if on not in ("get", "post"):
            raise ValueError('on must be "get" or "post", not {!r}'.format(on))
        end = time.monotonic() + timeout
        if on == "get":
            session = self._sessions.find(session_id, timeout)
            question = session.question(method, params)
            session.send(question.message, max(0.0, end - time.monotonic()))
            return question.wait(max(0.0, end - time.monotonic()))
        exchange = current()
        if exchange is not None:
            return exchange.ask(method, params, timeout)
        asking = Ask(method, params, timeout)
        injection = self.inject(asking)
        try:
            return asking.wait(timeout)
        finally:
            injection.cancel()

    def expire_sessions(self, status: int = 404, *, end_streams: bool = True) -> None:
        """Forget every legacy session: what comes with an id of before is refused from now on.

        A crash, a stop and a restart do the same.

        :param status: the HTTP status of the refusal: 404 as basic/transports demands, 400 as some servers do.
        :param end_streams: whether the sessions' open streams end as well.
        """
        self._sessions.expire(status, end_streams)

    @property
    def sessions(self) -> Tuple[Session, ...]:
        """The legacy sessions that last, the oldest first."""
        return tuple(self._sessions.all())

    @property
    def connections(self) -> int:
        """How many TCP connections are open."""
        return self._life.connections

    def wait_for_connections(self, n: int, timeout: float = 5.0) -> None:
        """Wait until exactly ``n`` TCP connections are open.

        :param timeout: seconds.
        :raises TimeoutError: that did not happen.
        """
        if not self._life.wait(n, timeout):
            raise TimeoutError("{} connections after {} s, not {}".format(self.connections, timeout, n))
