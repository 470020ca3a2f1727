"""``MCP_SERVERS``: what may stand there, and every mistake that can be made in it.

::

    MCP_SERVERS = {
        "default": "https://docs.example.com/mcp",
        "files": ["python", "server.py"],
        "docs": {
            "target": "https://docs.example.com/mcp",
            "auth": "mysite.credentials.docs",           # or what stands there itself
            "watch": ["docs://service/config"],
            "catalog": True,
            "poll_interval": 10,
        },
    }

Beside ``target``, ``watch``, ``catalog``, ``tools`` and ``prompts``, a dictionary may have every option of
:class:`mcp_sync.Client`, and for a command those of :class:`mcp_sync.Command`.
"""

import importlib
import inspect
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple, Union

from .. import Client, Command

__all__ = ["Mistake", "ServerSettings", "SettingsError", "resolve"]

#: What may be given by the dotted path to it.
_BY_PATH = ("auth", "on_sampling", "on_elicitation")


class SettingsError(Exception):
    """The settings cannot be used as they are; the message says where, why, and what to do."""


class Mistake(NamedTuple):
    """One thing that is wrong with the settings. Immutable; any thread.

    :param code: tells the kinds of mistakes apart, and does not change: ``"E001"``; ``"W001"`` for a mere warning.
    :param alias: the server that it is about; None if it is about all.
    :param text: what is wrong, and where. Never holds a value that may be a secret.
    :param hint: what to do.
    """

    code: str
    alias: Optional[str]
    text: str
    hint: str

    def __str__(self) -> str:
        return "%s. %s." % (self.text, self.hint)


class ServerSettings:
    """The settings of one server, read and found to make sense. Not changed after construction; any thread.

    :param alias: its name.
    :param target: its URL, or the command that starts it.
    :param options: of the client; some perhaps still as dotted paths.
    :param watch: the URIs to be watched.
    :param lists: which lists are to be watched too: ``catalog``, ``tools``, ``prompts``.
    :param where: how the settings are called, for messages.
    """

    def __init__(
        self,
        alias: str,
        target: Union[str, Command],
        options: Mapping[str, Any],
        watch: Tuple[str, ...],
        lists: Tuple[str, ...],
        where: str,
    ) -> None:
        self.alias = alias
        self.target = target
        self.options = dict(options)
        self.watch = watch
        self.lists = lists
        self._where = where

    @property
    def max_stale(self) -> Optional[float]:
        """The greatest age in seconds that an old copy may have; None for any."""
        limit: Optional[float] = self.options.get("max_stale", inspect.signature(Client).parameters["max_stale"].default)
        return limit

    def make_client(self) -> Client:
        """Return a new client.

        :raises SettingsError: if a dotted path leads nowhere, or the client refuses an option.
        """
        client, mistakes = self._try_to_make_client()
        if client is None:
            raise SettingsError(" ".join(str(mistake) for mistake in mistakes))
        return client

    def mistakes(self) -> List[Mistake]:
        """Return what shows only when a client is made. It makes one, which costs nothing."""
        client, mistakes = self._try_to_make_client()
        if client is not None:
            client.close()
        return mistakes

    def _try_to_make_client(self) -> Tuple[Optional[Client], List[Mistake]]:
        options: Dict[str, Any] = dict(self.options)
        mistakes: List[Mistake] = []
        for name in _BY_PATH:
            if isinstance(options.get(name), str):
                try:
                    options[name] = resolve(options[name])
                except SettingsError as error:
                    text = "%s[%r] is a text: %s" % (self._where, name, error)
                    hint = "Give the dotted path to it, 'package.module.name'; a token belongs into 'headers'"
                    mistakes.append(Mistake("E006", self.alias, text, hint))
        if mistakes:
            return None, mistakes
        if isinstance(options.get("auth"), type):
            try:
                options["auth"] = options["auth"]()
            except Exception as error:
                # Whatever it is, it is the user's class that raised it.
                text = "%s['auth'] is a class that cannot be called without arguments: %s" % (self._where, error)
                return None, [Mistake("E006", self.alias, text, "Give the path to an instance of it")]
        if isinstance(options.get("auth"), list):
            options["auth"] = tuple(options["auth"])  # a pair, as JSON and YAML have it
        try:
            return Client(self.target, **options), []
        except (TypeError, ValueError) as error:
            text = "%s is refused: %s" % (self._where, str(error).rstrip("."))
            return None, [Mistake("E007", self.alias, text, "See the options of mcp_sync.Client")]


def resolve(path: str) -> Any:
    """Return what a dotted path leads to.

    :raises SettingsError: if that is nothing; the message says why.
    """
    module, _, name = path.rpartition(".")
    if not module or not all(part.isidentifier() for part in path.split(".")):
        raise SettingsError("it is no dotted path")  # and not shown: it may be a token in the wrong place
    try:
        found = importlib.import_module(module)
    except Exception as error:
        # Whatever an import of the user's code raises.
        raise SettingsError("%s cannot be imported (%s: %s)" % (module, type(error).__name__, error)) from error
    try:
        return getattr(found, name)
    except AttributeError as error:
        raise SettingsError("there is no %r in %s" % (name, module)) from error
