"""The server that tests talk to: its life, what it holds, who listens, and what goes wrong on demand."""

from typing import Any, Callable, Collection, Optional, Sequence, Tuple

from .call import Fault
from .connection import Connection
from .control import Control, Gate, Injection
from .lifecycle import Lifecycle
from .methods import Methods, Settings
from .protocol import RESOURCE_UPDATED, RESOURCES_LIST_CHANGED, TOOLS_LIST_CHANGED, Item, Message
from .recorder import Recorder
from .request import Authenticate, Request
from .resources import Content, Resource, Store, ToolHandler, Value, describe
from .streams import ENDINGS, Streams
from .wire import Wire


class Server:
    """A Model Context Protocol server (revision 2026-07-28, Streamable HTTP) inside the process that tests a client.

    ::

        with Server() as server:
            server.add("docs://config", "colour = blue")
            ...                                     # point the client at server.url and let it watch
            server.update("docs://config", "colour = red")
            server.kill()                           # and see what the client makes of it
            server.restart()

    Everything that the server is asked is in :attr:`requests`; everything that a resource ever was is in
    :meth:`history`. Both outlive :meth:`stop`, :meth:`kill` and :meth:`restart`, as do resources, gates and faults.

    :param host: address to listen on.
    :param port: TCP port; 0 takes a free one, and a restart takes the same again.
    :param path: path of the endpoint; every other path is a 404.
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

    Pages: basic/transports/streamable-http, basic/patterns/subscriptions, server/resources, server/utilities/caching.

    Threads: any thread may call any method. The server's own threads are daemons.
    """

    def __init__(self, *, host: str = "127.0.0.1", port: int = 0, path: str = "/mcp", name: str = "mcp_sync-testing",
                 version: str = "1", instructions: Optional[str] = None, subscribe: bool = True,
                 list_changed: bool = True, ttl_ms: Any = 0, cache_scope: str = "private",
                 page_size: Optional[int] = None, protocol_versions: Sequence[str] = ("2026-07-28",),
                 answer: str = "json", keep_alive: Optional[float] = 15.0,
                 authenticate: Optional[Authenticate] = None, max_streams: Optional[int] = None, chunked: bool = True,
                 backlog: int = 200000) -> None:
        if answer not in ("json", "sse"):
            raise ValueError('answer must be "json" or "sse", not {!r}'.format(answer))
        self.host = host
        self.path = path
        self._settings = Settings(
            name=name, version=version, instructions=instructions, subscribe=subscribe, list_changed=list_changed,
            ttl_ms=ttl_ms, cache_scope=cache_scope, page_size=page_size, protocol_versions=tuple(protocol_versions),
            answer=answer, keep_alive=keep_alive, max_streams=max_streams, chunked=chunked, backlog=backlog)
        self._authenticate = authenticate
        self._store = Store()
        self._streams = Streams()
        self._control = Control()
        self._recorder = Recorder()
        self._methods = Methods(self._settings, self._store, self._streams)
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

    def start(self) -> "Server":
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
        self._life.stop()

    def kill(self) -> None:
        """End the way a crash does: no last words, every connection is reset, the port refuses connections."""
        self._life.kill()

    def restart(self) -> "Server":
        """Listen on the same port again, after :meth:`stop` or :meth:`kill`; a server that runs is stopped first."""
        self.stop()
        return self.start()

    def _serve(self, wire: Wire) -> None:
        Connection(wire, self.host, self.path, self._settings, self._authenticate, self._methods, self._streams,
                   self._control, self._recorder).serve()

    def __enter__(self) -> "Server":
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return "<mcp_sync.testing.Server {}>".format(self.url)

    # -- what it holds -------------------------------------------------------------------------------------------

    def add(self, uri: str, value: Value, *, name: Optional[str] = None, title: Optional[str] = None,
            description: Optional[str] = None, mime_type: Optional[str] = None, last_modified: Optional[str] = None,
            ttl_ms: Any = None, cache_scope: Optional[str] = None, principals: Optional[Collection[str]] = None,
            notify: bool = True) -> None:
        """Add a resource (server/resources).

        :param uri: its URI, any string.
        :param value: text, or bytes that are sent as a blob, or a callable that makes either for a principal.
        :param name: its name, by default what follows the last slash of the URI.
        :param last_modified: ISO 8601 time for its annotations.
        :param ttl_ms: ``ttlMs`` of its reads, in milliseconds; ``None`` for the server's.
        :param cache_scope: ``cacheScope`` of its reads; ``None`` for the server's.
        :param principals: who may see it; others do not find it in the list and get 403. ``None`` for everybody.
        :param notify: tell listeners that the list has changed, and that this URI has (it may have been asked for
            before it was there).
        :raises ValueError: there is such a resource.
        """
        entry = describe(value, uri=uri, name=uri.rsplit("/", 1)[-1] or uri if name is None else name, title=title,
                         description=description, mimeType=mime_type,
                         annotations=None if last_modified is None else {"lastModified": last_modified})
        self._store.add(uri, Resource(entry, value, ttl_ms, cache_scope, principals))
        if notify:
            self.notify_updated(uri)
            self.notify_resources_list_changed()

    def update(self, uri: str, value: Value, *, last_modified: Optional[str] = None, notify: bool = True) -> None:
        """Give a resource a new value; reads that look it up from now on see it.

        :param last_modified: a new ISO 8601 time for its annotations.
        :param notify: tell those who listen for this URI.
        :raises KeyError: there is no such resource.
        """
        self._store.update(uri, value, last_modified)
        if notify:
            self.notify_updated(uri)

    def remove(self, uri: str, *, notify: bool = True) -> None:
        """Remove a resource: reads answer "not found". Its history stays.

        :param notify: tell listeners that this URI and the list have changed.
        :raises KeyError: there is no such resource.
        """
        self._store.remove(uri)
        if notify:
            self.notify_updated(uri)
            self.notify_resources_list_changed()

    def restrict(self, uri: str, principals: Optional[Collection[str]]) -> None:
        """Change who may see a resource, without telling anybody; ``None`` for everybody.

        :raises KeyError: there is no such resource.
        """
        self._store.restrict(uri, principals)

    def get(self, uri: str) -> Value:
        """The value of a resource now.

        :raises KeyError: there is no such resource.
        """
        return self._store.get(uri)

    def history(self, uri: str) -> Tuple[Value, ...]:
        """Every value that a resource ever had, oldest first: what a client reads must be one of these."""
        return self._store.history(uri)

    def add_template(self, uri_template: str, name: str, *, title: Optional[str] = None,
                     description: Optional[str] = None, mime_type: Optional[str] = None,
                     read: Optional[Callable[[str], Optional[Content]]] = None) -> None:
        """Add a resource template (server/resources, "Resource Templates").

        :param read: from the URI of a read to its value, or to ``None`` if that URI is not of this template.
        """
        entry = {"uriTemplate": uri_template, "name": name, "title": title, "description": description,
                 "mimeType": mime_type}
        self._store.add_template({key: member for key, member in entry.items() if member is not None}, read)

    def add_tool(self, name: str, handler: ToolHandler, input_schema: Optional[Message] = None, *,
                 title: Optional[str] = None, description: Optional[str] = None, notify: bool = True) -> None:
        """Add a tool (server/tools).

        :param handler: gets the arguments. Text becomes a text block; a dictionary with ``content`` or ``resultType``
            is the result; anything else becomes ``structuredContent``. What it raises becomes a result with
            ``isError``.
        :param input_schema: by default an object with any members.
        :param notify: tell listeners that the list of tools has changed.
        """
        entry = {"name": name, "title": title, "description": description,
                 "inputSchema": {"type": "object"} if input_schema is None else input_schema}
        self._store.add_tool({key: member for key, member in entry.items() if member is not None}, handler)
        if notify:
            self._notify(TOOLS_LIST_CHANGED)

    # -- what listeners are told ---------------------------------------------------------------------------------

    def notify_updated(self, uri: str, times: int = 1, *, as_uri: Optional[str] = None) -> None:
        """Tell those who listen for a URI that it has changed, whether it has or not.

        :param times: how often, in one burst.
        :param as_uri: the URI to put into the notice where it differs: a sub-resource, or another spelling.
        """
        self._notify(RESOURCE_UPDATED, uri, times, as_uri)

    def notify_resources_list_changed(self, times: int = 1) -> None:
        """Tell those who listen for it that the list of resources has changed.

        :param times: how often, in one burst.
        """
        self._notify(RESOURCES_LIST_CHANGED, None, times)

    def _notify(self, method: str, uri: Optional[str] = None, times: int = 1, as_uri: Optional[str] = None) -> None:
        for stream in self._streams.all():
            if self._store.may_see(uri, stream.principal):
                stream.notify(method, uri, times, as_uri)

    def send(self, item: Item) -> None:
        """Put something on every listen stream exactly as it is, asked for or not.

        :param item: a message, or bytes to send between two events (end an event with an empty line).
        """
        for stream in self._streams.all():
            stream.send(item)

    def end_streams(self, how: str = "eof", timeout: float = 5.0) -> None:
        """End every open listen stream, and wait until each has ended, or for as long as you like.

        :param how: after all that waits has been sent: ``"result"``, the graceful end; ``"eof"``, the response ends
            without a word; ``"error"``, a JSON-RPC error; ``"cancelled"``, ``notifications/cancelled`` with the id of
            the request; ``"half_event"``, the response ends in the middle of an event; ``"cut"``, the connection ends
            and the response does not. At once: ``"reset"``, a TCP reset.
        :param timeout: seconds to wait at most; a client that does not read can take longer than that.
        """
        if how not in ENDINGS:
            raise ValueError("how must be one of {}, not {!r}".format(", ".join(ENDINGS), how))
        streams = self._streams.all()
        for stream in streams:
            stream.end(how)
        self._streams.wait_ended(streams, timeout)

    # -- what goes wrong, and when -------------------------------------------------------------------------------

    def hold(self, method: Optional[str] = None, uri: Optional[str] = None, at: str = "arrival") -> Gate:
        """Hold back the requests that match, from now on until the gate opens.

        ::

            with server.hold("resources/read", at="answer") as gate:
                ...                                # start a read in another thread
                gate.wait_reached()
                server.update(uri, "newer")        # the read that is held will answer what was before

        :param method: JSON-RPC method; ``None`` for any.
        :param uri: URI of a read, name of a tool, or one of the URIs of a listen; ``None`` for any.
        :param at: ``"arrival"``, before anything is looked up, or ``"answer"``, afterwards and before a byte is sent.
        """
        gate = Gate(method, uri, at)
        self._control.add_gate(gate)
        return gate

    def inject(self, *faults: Fault, method: Optional[str] = None, uri: Optional[str] = None,
               times: Optional[int] = 1) -> Injection:
        """Let the next requests that match go wrong.

        Of several injections that match a request, the oldest that has some left applies.

        :param faults: from :mod:`mcp_sync.testing.faults`, or callables of your own (see :mod:`mcp_sync.testing.call`).
            Several apply together, the first around the second and so on.
        :param method: JSON-RPC method; ``None`` for any HTTP request.
        :param uri: URI of a read, name of a tool, or one of the URIs of a listen; ``None`` for any.
        :param times: how many requests; ``None`` for all until :meth:`clear_faults`.
        :returns: a handle that counts the requests that met these faults, and waits for them.
        """
        injection = Injection(faults, method, uri, times)
        self._control.inject(injection)
        return injection

    def clear_faults(self) -> None:
        """Forget all faults; answers that one of them kept silent go out now."""
        self._control.clear_faults()
        self._life.wake()

    # -- what happened -------------------------------------------------------------------------------------------

    @property
    def requests(self) -> Tuple[Request, ...]:
        """Every request that has arrived, in order."""
        return self._recorder.all()

    def forget_requests(self) -> None:
        """Start :attr:`requests` again from nothing."""
        self._recorder.forget()

    def count(self, method: Optional[str] = None, uri: Optional[str] = None) -> int:
        """How many requests with that method about that URI have arrived; ``None`` for any."""
        return self._recorder.count(method, uri)

    def wait_for_requests(self, method: Optional[str] = None, n: int = 1, timeout: float = 5.0, *,
                          uri: Optional[str] = None) -> None:
        """Wait until ``n`` requests with that method, counted from the start, have arrived.

        :param timeout: seconds.
        :raises TimeoutError: they have not.
        """
        self._recorder.wait(method, n, uri, timeout)

    @property
    def streams(self) -> int:
        """How many listen streams are open: acknowledged, and not ended by either side."""
        return len(self._streams)

    def wait_for_streams(self, n: int = 1, timeout: float = 5.0) -> None:
        """Wait until exactly ``n`` listen streams are open.

        :param timeout: seconds.
        :raises TimeoutError: that did not happen.
        """
        if not self._streams.wait(n, timeout):
            raise TimeoutError("{} listen streams after {} s, not {}".format(self.streams, timeout, n))

    def wait_for_no_streams(self, timeout: float = 5.0) -> None:
        """Wait until no listen stream is open: the client has closed them.

        :param timeout: seconds.
        :raises TimeoutError: that did not happen.
        """
        self.wait_for_streams(0, timeout)

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
