"""What the server holds: resources with all their values, and templates.

Pages: server/resources, server/utilities/caching. No socket and no thread here; a lock, because tests change values
while the server answers.
"""

import base64
import threading
from typing import Any, Callable, Collection, Dict, List, Optional, Tuple, Union

from .functions import with_call
from .invocation import Invocation
from .protocol import Forbidden, Message, NotFound

Content = Union[str, bytes]
#: A value, or what makes one for a principal (and, if it takes two things, an :class:`Invocation`).
Value = Union[str, bytes, Callable[..., Content]]
#: From the URI of a read, and if it takes two things an :class:`Invocation`, to a value or to ``None``.
Reader = Callable[..., Optional[Content]]


class Resource:
    """One resource as it is at some moment; replaced, never changed.

    :param description: the members of its entry in ``resources/list``.
    :param value: its text, its bytes, or a callable that makes either for a principal.
    :param ttl_ms: its own ``ttlMs``, ``None`` for the server's.
    :param cache_scope: its own ``cacheScope``, ``None`` for the server's.
    :param principals: who may see it, ``None`` for everybody.
    """

    def __init__(self, description: Message, value: Value, ttl_ms: Any, cache_scope: Optional[str],
                 principals: Optional[Collection[str]]) -> None:
        self.description = description
        self.value = value
        self.ttl_ms = ttl_ms
        self.cache_scope = cache_scope
        self.principals = None if principals is None else frozenset(principals)

    def visible(self, principal: Optional[str]) -> bool:
        """Whether that principal may see it."""
        return self.principals is None or principal in self.principals

    def replaced(self, **changes: Any) -> "Resource":
        """A copy with some attributes changed."""
        values = dict(description=self.description, value=self.value, ttl_ms=self.ttl_ms,
                      cache_scope=self.cache_scope, principals=self.principals)
        values.update(changes)
        return Resource(**values)


def contents(uri: str, mime_type: Optional[str], value: Content) -> Message:
    """One element of ``contents`` in a ``resources/read`` result."""
    item: Message = {"uri": uri}
    if mime_type is not None:
        item["mimeType"] = mime_type
    if isinstance(value, str):
        item["text"] = value
    else:
        item["blob"] = base64.b64encode(value).decode("ascii")
    return item


class Store:
    """Everything that can be listed and read.

    Threads: any thread may call any method. Callables of the user run without the lock.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Guarded by _lock; all in the order of insertion:
        self._resources: Dict[str, Resource] = {}
        self._history: Dict[str, List[Value]] = {}
        self._templates: Dict[str, Tuple[Message, Optional[Reader]]] = {}

    # -- resources -----------------------------------------------------------------------------------------------

    def add(self, uri: str, resource: Resource) -> None:
        """Add a resource.

        :raises ValueError: there is one with that URI.
        """
        with self._lock:
            if uri in self._resources:
                raise ValueError("{!r} exists already: update() changes it".format(uri))
            self._resources[uri] = resource
            self._history.setdefault(uri, []).append(resource.value)

    def update(self, uri: str, value: Value, last_modified: Optional[str]) -> None:
        """Give a resource a new value.

        :raises KeyError: there is none with that URI.
        """
        with self._lock:
            old = self._resources[uri]
            description = dict(old.description)
            if last_modified is not None:
                description["annotations"] = dict(description.get("annotations", {}), lastModified=last_modified)
            description.pop("size", None)
            description.update(_size(value))
            self._resources[uri] = old.replaced(description=description, value=value)
            self._history[uri].append(value)

    def restrict(self, uri: str, principals: Optional[Collection[str]]) -> None:
        """Change who may see a resource.

        :raises KeyError: there is none with that URI.
        """
        with self._lock:
            self._resources[uri] = self._resources[uri].replaced(principals=principals)

    def remove(self, uri: str) -> None:
        """Remove a resource; its history stays.

        :raises KeyError: there is none with that URI.
        """
        with self._lock:
            del self._resources[uri]

    def get(self, uri: str) -> Value:
        """The value of a resource now.

        :raises KeyError: there is none with that URI.
        """
        with self._lock:
            return self._resources[uri].value

    def history(self, uri: str) -> Tuple[Value, ...]:
        """Every value that a resource ever had, oldest first."""
        with self._lock:
            return tuple(self._history.get(uri, ()))

    def may_see(self, uri: Optional[str], principal: Optional[str]) -> bool:
        """Whether nothing keeps that principal from that URI; a URI without a resource is nobody's secret."""
        with self._lock:
            resource = self._resources.get(uri) if uri is not None else None
        return resource is None or resource.visible(principal)

    def everything(self) -> List[Tuple[str, Message]]:
        """All resources, whoever may see them: (uri, description) pairs."""
        with self._lock:
            return [(uri, resource.description) for uri, resource in self._resources.items()]

    def catalog(self, principal: Optional[str]) -> List[Tuple[str, Message]]:
        """The catalog as a principal sees it: (uri, description) pairs."""
        with self._lock:
            return [(uri, resource.description) for uri, resource in self._resources.items()
                    if resource.visible(principal)]

    def read(self, uri: str, call: Invocation) -> Tuple[List[Message], Any, Optional[str]]:
        """The contents of a resource, its ``ttlMs`` and its ``cacheScope`` (``None`` where the server's apply).

        :param call: the read, for what makes a value.
        :raises NotFound: there is no such resource.
        :raises Forbidden: that principal may not see it.
        """
        principal = call.principal
        with self._lock:
            resource = self._resources.get(uri)
            templates = list(self._templates.values())
        if resource is not None:
            if not resource.visible(principal):
                raise Forbidden(uri)
            value = with_call(resource.value)(principal, call) if callable(resource.value) else resource.value
            return [contents(uri, resource.description.get("mimeType"), value)], resource.ttl_ms, resource.cache_scope
        for description, reader in templates:
            made = None if reader is None else with_call(reader)(uri, call)
            if made is not None:
                return [contents(uri, description.get("mimeType"), made)], None, None
        raise NotFound(uri)

    # -- templates -----------------------------------------------------------------------------------------------

    def add_template(self, description: Message, reader: Optional[Reader]) -> None:
        """Add or replace a resource template."""
        with self._lock:
            self._templates[description["uriTemplate"]] = (description, reader)

    def list_templates(self) -> List[Tuple[str, Message]]:
        """(URI template, description) pairs."""
        with self._lock:
            return [(key, description) for key, (description, _) in self._templates.items()]


def describe(value: Value, **members: Any) -> Message:
    """A description from those members that are not ``None``, with the size of a value that is known."""
    description = {name: member for name, member in members.items() if member is not None}
    description.update(_size(value))
    return description


def _size(value: Value) -> Message:
    if isinstance(value, str):
        return {"size": len(value.encode("utf-8", "surrogatepass"))}
    return {"size": len(value)} if isinstance(value, bytes) else {}
