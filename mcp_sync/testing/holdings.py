"""What a test changes in a server: resources and templates, and what those who listen are told about them."""

from typing import Any, Collection, Dict, Mapping, Optional, Tuple

from .protocol import RESOURCE_UPDATED, RESOURCES_LIST_CHANGED, Item
from .resources import Reader, Resource, Store, Value, describe
from .skills import SKILL, Skill, Skills, skill_text
from .streams import ENDINGS, Streams


class Holdings:
    """The part of a server that holds something and tells of it.

    :param store: what it holds.
    :param streams: who listens.

    Threads: any thread may call any method.
    """

    def __init__(self, store: Store, streams: Streams) -> None:
        self._store = store
        self._skills = Skills(store)
        self._streams = streams

    # -- what it holds -------------------------------------------------------------------------------------------

    def add(self, uri: str, value: Value, *, name: Optional[str] = None, title: Optional[str] = None,
            description: Optional[str] = None, mime_type: Optional[str] = None, last_modified: Optional[str] = None,
            ttl_ms: Any = None, cache_scope: Optional[str] = None, principals: Optional[Collection[str]] = None,
            notify: bool = True) -> None:
        """Add a resource (server/resources).

        :param uri: its URI, any string.
        :param value: text, or bytes that are sent as a blob, or a callable that makes either for a principal; one that
            takes two things gets the :class:`~mcp_sync.testing.Invocation` as well, and can ask the client.
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
                     read: Optional[Reader] = None) -> None:
        """Add a resource template (server/resources, "Resource Templates").

        :param read: from the URI of a read to its value, or to ``None`` if that URI is not of this template; one that
            takes two things gets the :class:`~mcp_sync.testing.Invocation` as well.
        """
        entry = {"uriTemplate": uri_template, "name": name, "title": title, "description": description,
                 "mimeType": mime_type}
        self._store.add_template({key: member for key, member in entry.items() if member is not None}, read)

    def add_skill(self, uri: str, frontmatter: Dict[str, Any], body: str = "",
                  files: Optional[Mapping[str, Value]] = None, *, text: Optional[str] = None, dynamic: bool = False,
                  listed: bool = True, raw: Any = None, notify: bool = True) -> None:
        """Add a skill: resources, and an entry that is made of what they are when it is asked for (the repository
        ext-skills).

        :param uri: its directory, such as ``skill://acme/refunds``; the last segment is to be its name.
        :param frontmatter: of its ``SKILL.md``, and of its entry.
        :param body: what follows the frontmatter in its ``SKILL.md``.
        :param files: its other files, by their paths in the directory. :meth:`update` and :meth:`remove` change them.
        :param text: its ``SKILL.md``, in place of one that is made of the frontmatter and the body.
        :param dynamic: whether its entry has no digests.
        :param listed: whether ``skills/list`` tells of it; ``skills/get`` does in any case.
        :param raw: its entry, in place of all this, and exactly as it is: a wrong digest, a file too few.
        :param notify: tell listeners that the list of resources has changed.
        :raises ValueError: there are such resources.
        """
        whole: Dict[str, Value] = {SKILL[1:]: skill_text(frontmatter, body) if text is None else text}
        for path, value in dict(whole, **(files or {})).items():
            is_skill = path == SKILL[1:]
            self.add("{}/{}".format(uri, path), value, name=frontmatter.get("name") if is_skill else None,
                     description=frontmatter.get("description") if is_skill else None,
                     mime_type="text/markdown" if path.endswith(".md") else None, notify=False)
        self._skills.add(uri, Skill(frontmatter, dynamic, listed, raw))
        if notify:
            self.notify_resources_list_changed()

    def remove_skill(self, uri: str, *, notify: bool = True) -> None:
        """Remove a skill and all its files.

        :param notify: tell listeners that the list of resources has changed.
        :raises KeyError: there is no such skill.
        """
        self._skills.remove(uri)
        for inner, _ in self._store.everything():
            if inner.startswith(uri + "/"):
                self.remove(inner, notify=False)
        if notify:
            self.notify_resources_list_changed()

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

    @property
    def streams(self) -> int:
        """How many streams are open that carry notices, and not ended by either side.

        That is: acknowledged listen streams; in the legacy era GET streams, the streams of HTTP+SSE, and processes
        whose client has done the handshake.
        """
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
