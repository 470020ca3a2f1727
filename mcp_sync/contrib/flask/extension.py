"""The extension, and what stands for the clients of the app at work."""

from typing import Any, Callable, List, Optional

from flask import current_app
from werkzeug.local import LocalProxy

from ... import Change, Client
from ..clients import Clients, Listener
from ..settings import SettingsError
from .commands import commands

__all__ = ["MCPSync", "current_mcp"]

_KEY = "mcp_sync"


class MCPSync:
    """Gives an app the clients that its ``MCP_SERVERS`` describe. Any thread.

    One of these may serve several apps, each with clients of its own. Nothing is started before it is used.

    :param app: the app; or none, and :meth:`init_app` later.
    :raises SettingsError: if something is wrong with ``MCP_SERVERS``; the message has every mistake, and what to do.
    """

    def __init__(self, app: Optional[Any] = None) -> None:
        self._listeners: List[Listener] = []
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Any) -> None:
        """Prepare an app.

        :param app: the app; its ``MCP_SERVERS`` must be set by now.
        :raises SettingsError: as for the class.
        """
        clients = Clients(lambda: app.config.get("MCP_SERVERS"))
        # Not deep: what dotted paths lead to may import the module that is just making this app.
        wrong = [mistake for mistake in clients.mistakes(deep=False) if not mistake.code.startswith("W")]
        if wrong:
            raise SettingsError(" ".join(str(mistake) for mistake in wrong))
        clients.on_change(self._tell(app))
        app.extensions[_KEY] = clients
        app.cli.add_command(commands)

    def on_change(self, listener: Listener) -> Listener:
        """Have ``listener(alias, client, change)`` called, within the app's context, for each change of what the settings
        have watched. A decorator.

        It is called in a thread of the client's; what is not used in a process is not watched in it.
        """
        self._listeners.append(listener)
        return listener

    def _tell(self, app: Any) -> Callable[[str, Client, Change], None]:
        def tell(alias: str, client: Client, change: Change) -> None:
            for listener in list(self._listeners):
                with app.app_context():
                    try:
                        listener(alias, client, change)
                    except Exception:
                        # The boundary between the site's code and our thread; the other listeners are called.
                        app.logger.exception("a listener for changes of %r failed", alias)

        return tell


def _current() -> Clients:
    clients: Optional[Clients] = current_app.extensions.get(_KEY)
    if clients is None:
        raise RuntimeError("this app has no MCP clients: call MCPSync(app), or init_app(app)")
    return clients


#: The clients of the current app, by alias; see :class:`mcp_sync.contrib.clients.Clients`.
current_mcp: Any = LocalProxy(_current)
