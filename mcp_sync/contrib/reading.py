"""What stands in ``MCP_SERVERS``, read: the servers that are described well, and what is wrong with the others."""

import difflib
import inspect
import math
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union
from urllib.parse import urlsplit

from .. import Client, Command
from .settings import Mistake, ServerSettings

__all__ = ["read_settings"]

_OPTIONS = {
    name: parameter.annotation for name, parameter in inspect.signature(Client).parameters.items() if name != "target"
}
_OF_COMMANDS = ("env", "cwd")
_LISTS = ("catalog", "tools", "prompts")
_KEYS = ("target", "watch") + _LISTS + _OF_COMMANDS + tuple(_OPTIONS)

#: What people write who have seen the settings of other programs.
_OTHER_NAMES = {"url": "target", "command": "target", "args": "target", "argv": "target", "uris": "watch", "resources": "watch"}

#: Durations that are an answer even if they are zero.
_MAY_BE_ZERO = ("default_ttl", "max_stale", "poll_after", "throttle")


def read_settings(value: Any, setting: str = "MCP_SERVERS") -> Tuple[Dict[str, ServerSettings], List[Mistake]]:
    """Return the servers that are described well, by alias, and all mistakes in the description of the others.

    Nothing is imported or connected to here; see :meth:`ServerSettings.mistakes`.

    :param value: what stands in the settings.
    :param setting: how it is called there.
    """
    servers: Dict[str, ServerSettings] = {}
    mistakes: List[Mistake] = []
    if value is None:
        value = {}
    if not isinstance(value, Mapping):
        text = "%s is a %s" % (setting, type(value).__name__)
        hint = "Write a dictionary: {'default': 'https://docs.example.com/mcp'}"
        return {}, [Mistake("E001", None, text, hint)]
    for alias, entry in value.items():
        if not isinstance(alias, str) or not alias:
            text = "%s has the key %r" % (setting, alias)
            mistakes.append(Mistake("E002", None, text, "A server's alias is a text, for example 'default'"))
            continue
        reading = _Reading(alias, "%s[%r]" % (setting, alias))
        server = reading.server(entry)
        if server is not None:
            servers[alias] = server
        mistakes.extend(reading.mistakes)
    return servers, mistakes


class _Reading:
    """Reads the entry of one server, and collects what is wrong with it."""

    def __init__(self, alias: str, where: str) -> None:
        self._alias = alias
        self._where = where
        self.mistakes: List[Mistake] = []

    def _wrong(self, code: str, text: str, hint: str) -> None:
        self.mistakes.append(Mistake(code, self._alias, text, hint))

    def server(self, entry: Any) -> Optional[ServerSettings]:
        where = self._where
        if not isinstance(entry, Mapping):
            entry = {"target": entry}
        elif "target" not in entry:
            near = [name for name in entry if _OTHER_NAMES.get(str(name).lower()) == "target"]
            hint = "'target' is its URL, or its command as a list of texts"
            self._wrong("E003", "%s has no 'target'" % where, hint + (" (you call it %r)" % near[0] if near else ""))
            entry = dict(entry, target=None)
        for key in entry:
            if key not in _KEYS:
                self._unknown(key)
        target = self._target(entry)
        watch = self._watch(entry.get("watch"))
        for name in _LISTS:
            if not isinstance(entry.get(name, False), bool):
                self._wrong("E005", "%s[%r] is a %s" % (where, name, _kind(entry[name])), "Write True or False")
        options = {name: entry[name] for name in _OPTIONS if name in entry}
        for name, option in options.items():
            self._option(name, option)
        if any(not mistake.code.startswith("W") for mistake in self.mistakes) or target is None:
            return None
        self._warn(target, options)
        lists = tuple(name for name in _LISTS if entry.get(name))
        return ServerSettings(self._alias, target, options, watch, lists, where)

    def _unknown(self, key: Any) -> None:
        lower = str(key).lower()
        near = _OTHER_NAMES.get(lower) or next(iter(difflib.get_close_matches(lower, _KEYS, 1)), None)
        hint = "Did you mean %r?" % near if near else "There are: %s" % ", ".join(_KEYS)
        self._wrong("E004", "%s has the unknown key %r" % (self._where, key), hint.rstrip("?"))

    def _target(self, entry: Mapping[str, Any]) -> Union[None, str, Command]:
        target = entry["target"]
        where = self._where
        of_commands = {name: entry[name] for name in _OF_COMMANDS if name in entry}
        if target is None and self.mistakes:
            return None  # said already
        if isinstance(target, str):
            if of_commands:
                name = next(iter(of_commands))
                self._wrong("E003", "%s[%r] is for a command, and 'target' is a URL" % (where, name), "Leave it out")
            parts = urlsplit(target)
            if parts.scheme in ("http", "https") and parts.netloc:
                return target
            example = ["python", "server.py"] if "@" in target else target.split() or ["python"]
            hint = "A URL begins with https:// or http://; a command is a list of texts: %r" % example
            self._wrong("E003", "%s: the target %s is no URL" % (where, _shown(target)), hint)
            return None
        if isinstance(target, Command):
            if of_commands:
                self._wrong("E003", "%s has %s beside a Command" % (where, " and ".join(of_commands)), "Give them to Command")
            return target
        if isinstance(target, Sequence) and not isinstance(target, (bytes, bytearray)):
            if target and all(isinstance(part, str) for part in target):
                try:
                    return Command(list(target), **of_commands)
                except (TypeError, ValueError) as error:
                    hint = "'env' is a dictionary of texts, 'cwd' a directory"
                    self._wrong("E003", "%s is no command: %s" % (where, error), hint)
                    return None
        hint = "Give its URL, or its command as a list of texts: ['python', 'server.py']"
        self._wrong("E003", "%s: the target is a %s" % (where, _kind(target)), hint)
        return None

    def _watch(self, watch: Any) -> Tuple[str, ...]:
        if watch is None:
            return ()
        if isinstance(watch, (list, tuple, set, frozenset)) and all(isinstance(uri, str) and uri for uri in watch):
            return tuple(sorted(watch) if isinstance(watch, (set, frozenset)) else watch)
        hint = "Write a list of URIs: [%s]" % (repr(watch) if isinstance(watch, str) else "'docs://service/config'")
        self._wrong("E005", "%s['watch'] is %s" % (self._where, _list_kind(watch)), hint)
        return ()

    def _option(self, name: str, option: Any) -> None:
        annotation = _OPTIONS[name]
        wanted = None
        if annotation in (float, Optional[float]):
            least = "zero or more" if name in _MAY_BE_ZERO else "more than zero"
            fits = _is_number(option) and (option > 0 or (option == 0 and name in _MAY_BE_ZERO))
            fits = fits or (option is None and annotation is not float)
            wanted = None if fits else "a number of seconds, %s" % least
        elif annotation is int:
            fits = isinstance(option, int) and not isinstance(option, bool) and option > 0
            wanted = None if fits else "a whole number above zero"
        elif annotation is bool:
            wanted = None if isinstance(option, bool) else "True or False"
        elif annotation is str:
            wanted = None if isinstance(option, str) else "a text"
        elif name == "headers":
            fits = isinstance(option, Mapping) and all(isinstance(part, str) for pair in option.items() for part in pair)
            wanted = None if option is None or fits else "a dictionary of texts: {'X-Tenant': 'docs'}"
        if wanted is not None:
            # Numbers and the like are shown, since they are no secrets and it is easier to find what one has written.
            shown = repr(option) if annotation in (float, Optional[float], int, bool) else "a " + _kind(option)
            self._wrong("E005", "%s[%r] is %s" % (self._where, name, shown[:100]), "It must be %s" % wanted)

    def _warn(self, target: Union[str, Command], options: Mapping[str, Any]) -> None:
        if not isinstance(target, str):
            return
        parts = urlsplit(target)
        names = {name.lower() for name in options.get("headers") or ()}
        secret = bool(options.get("auth")) or parts.password is not None or "authorization" in names
        local = (parts.hostname or "") in ("localhost", "127.0.0.1", "::1")
        if secret and parts.scheme == "http" and not local:
            text = "%s sends credentials to %s without encryption" % (self._where, parts.hostname)
            self._wrong("W001", text, "Use https://, if the server has it")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _kind(value: Any) -> str:
    if isinstance(value, (list, tuple)) and not value:
        return "%s with nothing in it" % type(value).__name__
    return {"str": "text", "NoneType": "None"}.get(type(value).__name__, type(value).__name__)


def _list_kind(value: Any) -> str:
    if isinstance(value, (list, tuple, set, frozenset)):
        odd = next(part for part in value if not (isinstance(part, str) and part))
        return "a list with %r in it" % (odd,)
    return "a %s" % _kind(value)


def _shown(target: str) -> str:
    return repr(target if len(target) <= 60 else target[:60] + "…") if "@" not in target else "(hidden, it has an @)"
