"""The clients of one process, by alias, each made when it is first used."""

import atexit
import logging
import os
import threading
import weakref
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

from .. import Change, Client, Watch
from .reading import read_settings
from .settings import Mistake, ServerSettings, SettingsError

__all__ = ["Clients", "Listener"]

_log = logging.getLogger("mcp_sync")

#: ``listener(alias, client, change)``
Listener = Callable[[str, Client, Change], Any]

_all: "weakref.WeakSet[Clients]" = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for clients in list(_all):
        clients.close()


class Clients(Mapping[str, Client]):
    """The clients that the settings describe: ``clients["default"]``. Any thread.

    Looking one up makes it, if that was not done yet, and opens the watch that its settings ask for; neither waits for the
    server. After a fork a child goes on with those of its parent, which begin anew there: with connections, streams and
    child processes of their own. At the end of the process they are closed.

    :param read: returns the setting; called at first use, so that settings may be read late.
    :param setting: how the setting is called, for messages.
    """

    def __init__(self, read: Callable[[], Any], setting: str = "MCP_SERVERS") -> None:
        self._read = read
        self._setting = setting
        self._listeners: List[Listener] = []
        self._known: Optional[Tuple[Dict[str, ServerSettings], List[Mistake]]] = None
        self._made: Dict[str, Tuple[Client, Optional[Watch]]] = {}
        # Held while one is put in its place. A child must not use that of its parent: a thread that it does not have may
        # hold it for ever.
        self._locks: Dict[int, threading.Lock] = {}
        _all.add(self)

    # -- the mapping -----------------------------------------------------------------------------------------------------

    def __getitem__(self, alias: str) -> Client:
        """Return the client of this name.

        :raises SettingsError: if there is none, or its settings are wrong; the message says what to do.
        """
        return self._get(alias)[0]

    def __iter__(self) -> Iterator[str]:
        return iter(self.aliases)

    def __len__(self) -> int:
        return len(self.aliases)

    def __contains__(self, alias: object) -> bool:
        return alias in self.aliases

    # Two of these are equal only if they are one, whatever mappings do: comparing would start all clients.
    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return "<Clients of %s: %s>" % (self._setting, ", ".join(self.aliases) or "none")

    # -- more ------------------------------------------------------------------------------------------------------------

    @property
    def aliases(self) -> Tuple[str, ...]:
        """The names of all, those included whose settings are wrong."""
        servers, mistakes = self._settings()
        wrong = [mistake.alias for mistake in mistakes if mistake.alias is not None and mistake.alias not in servers]
        return tuple(dict.fromkeys(list(servers) + wrong))

    def watch(self, alias: str) -> Optional[Watch]:
        """Return the watch that the settings ask for, or None if they ask for none.

        :raises SettingsError: as for a lookup.
        """
        return self._get(alias)[1]

    def settings(self, alias: str) -> ServerSettings:
        """Return the settings of one.

        :raises SettingsError: as for a lookup.
        """
        servers, mistakes = self._settings()
        if alias in servers:
            return servers[alias]
        of_it = [mistake for mistake in mistakes if mistake.alias in (None, alias)]
        if of_it:
            raise SettingsError(" ".join(str(mistake) for mistake in of_it))
        there = ", ".join(repr(name) for name in servers) or "none"
        raise SettingsError("there is no server %r in %s; there are: %s" % (alias, self._setting, there))

    def mistakes(self, deep: bool = True) -> List[Mistake]:
        """Return everything that is wrong with the settings.

        :param deep: whether to follow dotted paths, too, and to try whether clients can be made.
        """
        servers, mistakes = self._settings()
        found = list(mistakes)
        if deep:
            for server in servers.values():
                found.extend(server.mistakes())
        return found

    def on_change(self, listener: Listener) -> Listener:
        """Have ``listener(alias, client, change)`` called for each change of what the settings have watched. A decorator.

        It runs in a thread of the client, as for :meth:`mcp_sync.Watch.on_change`. It starts nothing: what is not used is not
        watched.
        """
        self._listeners.append(listener)
        return listener

    def close(self) -> None:
        """Close all, and forget the settings: the next lookup reads them again. Any number of times."""
        with self._lock:
            made, self._made = self._made, {}
            self._known = None
        for client, _ in made.values():
            client.close()

    # -- within ----------------------------------------------------------------------------------------------------------

    @property
    def _lock(self) -> threading.Lock:
        return self._locks.setdefault(os.getpid(), threading.Lock())

    def _settings(self) -> Tuple[Dict[str, ServerSettings], List[Mistake]]:
        known = self._known
        if known is None:
            known = self._known = read_settings(self._read(), self._setting)
        return known

    def _get(self, alias: str) -> Tuple[Client, Optional[Watch]]:
        made = self._made.get(alias)
        if made is not None:
            return made
        settings = self.settings(alias)
        # Without the lock, because it may import modules of the user's, which may use this. If another thread was quicker, one
        # was made for nothing, which costs nothing.
        client = settings.make_client()
        with self._lock:
            made = self._made.get(alias)
            if made is None:
                made = self._made[alias] = (client, self._watched(settings, client))
        return made

    def _watched(self, settings: ServerSettings, client: Client) -> Optional[Watch]:
        if not settings.watch and not settings.lists:
            return None

        def tell(change: Change) -> None:
            for listener in list(self._listeners):
                try:
                    listener(settings.alias, client, change)
                except Exception:
                    # The boundary between a user's code and our thread; the other listeners are called.
                    _log.exception("a listener for changes of %r failed", settings.alias)

        lists: Dict[str, Any] = {name: True for name in settings.lists}
        return client.watch(*settings.watch, on_change=tell, **lists)
