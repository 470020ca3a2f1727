"""What is done with bytes and values that a server sent, and what must hold whatever they are. No hypothesis here."""

import copy
import dataclasses
import pathlib
import pickle
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple, get_type_hints

from mcp_sync import results
from mcp_sync._deadline import monotonic
from mcp_sync._eventstream import Event, EventStream
from mcp_sync._value import Value
from mcp_sync.eras.base import Ended
from mcp_sync.eras.legacy import Legacy
from mcp_sync.eras.modern import Modern
from mcp_sync.errors import MCPSyncError, MessageTooLarge, ProtocolError
from mcp_sync.jsonrpc import Notification, Request, Response, classify_id, decode, encode
from mcp_sync.notices import Acknowledged, Notice, ResourceUpdated
from mcp_sync.results.skills import problem_of
from mcp_sync.tool_headers import problem_with
from mcp_sync.transports.base import Exchange, Outgoing
from mcp_sync.uris import Matcher

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"
LIMIT = 1 << 20
REQUEST_ID = 4294967299


def corpus(kind: str) -> List[Tuple[str, bytes]]:
    """The names and the bytes of what is kept of a kind. Streams are text with escapes: ``\\r``, ``\\xff``."""
    kept = []
    for path in sorted((CORPUS / kind).iterdir()):
        data = path.read_bytes()
        if path.suffix == ".txt":
            data = data.decode("unicode_escape").encode("latin-1")
        kept.append((path.name, data))
    return kept


#: What is put in the place of each part of what is kept, in turn.
WRONG: Tuple[Any, ...] = (None, True, 0, -1, 0.5, 1e15, 10**400, float("inf"), float("nan"), [], [[None]], {}, {"uri": 1})
WRONG += ("", "x", "\ud800", "2026-02-30T25:61:61+99:99", "=", "docs://a")


def spoilt_everywhere(value: Any) -> Iterator[Any]:
    """Yield a value with each of its parts replaced by everything that is wrong there, and with each part left out."""
    for wrong in WRONG:
        yield wrong
    if isinstance(value, dict):
        for name in value:
            yield {other: inner for other, inner in value.items() if other != name}
            for inner in spoilt_everywhere(value[name]):
                yield {**value, name: inner}
    elif isinstance(value, list):
        for at, part in enumerate(value):
            yield value[:at] + value[at + 1 :]
            for inner in spoilt_everywhere(part):
                yield value[:at] + [inner] + value[at + 1 :]


# -- event streams -----------------------------------------------------------------------------------------------------


def outline(pieces: Iterable[bytes], limit: int = LIMIT) -> Tuple[List[Any], int]:
    """The events of a stream, with the text of an error where one stands for an event, or ended it; and its comments."""
    stream = EventStream(iter(pieces), limit)
    found: List[Any] = []
    try:
        for item in stream:
            assert isinstance(item, (Event, ProtocolError)), item
            found.append(item if isinstance(item, Event) else str(item))
    except MessageTooLarge as error:
        found.append(type(error))
    return found, stream.comments


def by_the_standard(stream: bytes) -> List[Any]:
    """The events of a whole stream, read in the plainest way that the standard allows; None for one that is not UTF-8."""
    if stream.startswith(b"\xef\xbb\xbf"):
        stream = stream[3:]
    lines = stream.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")[:-1]
    events: List[Any] = []
    block: List[bytes] = []
    for line in lines:
        if line:
            block += [] if line.startswith(b":") else [line]
            continue
        if block:
            events += _event(block)
        block = []
    return events


def _event(block: List[bytes]) -> List[Any]:
    data: List[str] = []
    fields: Dict[str, str] = {}
    try:
        for line in block:
            name, _, value = line.decode("utf-8").partition(":")
            value = value[1:] if value.startswith(" ") else value
            if name == "data":
                data.append(value)
            elif name in ("event", "id", "retry"):
                fields[name] = value
    except UnicodeDecodeError:
        return [None]
    # No data, no event.
    return [Event(fields.get("event") or "message", "\n".join(data), fields.get("id"), fields.get("retry"))] if data else []


# -- messages ----------------------------------------------------------------------------------------------------------


class Answer(Exchange):
    """An exchange that is over: what an era wants to know of the answer's envelope."""

    def __next__(self) -> Any:
        raise StopIteration

    def interrupt(self) -> None:
        pass

    def close(self) -> None:
        pass

    def limit(self, deadline: Any, silence: Any = None, lively: Any = None) -> None:
        pass


_MODERN = Modern({"name": "stress", "version": "1"}, {})
_LEGACY = Legacy("2025-11-25", "session")


def read_message(data: Any) -> List[Any]:
    """Everything that is made of one message, on whichever road it comes. What fails fails by an error of the package."""
    try:
        message = decode(data)
    except ProtocolError as error:
        return [shown(error)]
    assert isinstance(message, (Response, Notification, Request)), message
    # Whatever was read can be shown, copied and sent again: it is not too deep for that.
    assert repr(copy.deepcopy(message)) == repr(message)
    tried(lambda: encode({"again": [getattr(message, name) for name in message.__slots__]}))
    if not isinstance(message, Response):
        assert isinstance(message.method, str) and isinstance(message.params, dict), message
    made: List[Any] = [message]
    for read in (
        lambda: _MODERN.notice(REQUEST_ID, message),
        lambda: _LEGACY.notice(message),
        lambda: classify_id(REQUEST_ID, getattr(message, "id", None)),
    ):
        made.append(tried(read))
        _look_at_notice(made[-1])
    if isinstance(message, Response):
        for era in (_MODERN, _LEGACY):
            for method, params in (("resources/read", {"uri": "docs://a"}), ("tools/call", {"name": "a"})):
                outgoing = era.request(REQUEST_ID, method, params)
                made.append(tried(lambda: era.result(outgoing, message, Answer())))
                assert isinstance(made[-1], (dict, str)), made[-1]
        made.append(tried(lambda: Legacy.initialized(message.result, None, None).version))
    if isinstance(message, Request):
        made.append(tried(lambda: encode(_LEGACY.reply(message.id, {"params": message.params}).message)))
    return made


def _look_at_notice(notice: Any) -> None:
    assert notice is None or isinstance(notice, (Notice, Ended, str)), notice
    if isinstance(notice, ResourceUpdated):
        assert Matcher([notice.uri]).concerned(notice.uri) == (notice.uri,)
        Matcher(["docs://service/config", "file:///etc"]).concerned(notice.uri)
    if isinstance(notice, Acknowledged):
        assert notice.granted.contains(type(notice.granted).from_wire(notice.granted.to_wire()))


def tried(read: Callable[[], Any]) -> Any:
    """What a reading gives, or the text of the error of the package that it ends with. Any other error is a defect."""
    try:
        return read()
    except MCPSyncError as error:
        return shown(error)


def shown(error: MCPSyncError) -> str:
    """The text of an error: one line, not endless, and fit to be sent elsewhere."""
    text = str(error)
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == text and type(again) is type(error)
    return type(error).__name__ + ": " + text


# -- results -----------------------------------------------------------------------------------------------------------

_NOW = (1.0, 2.0, 3.0)


def _pages(cls: Any, **checks: Any) -> Callable[[Any], Any]:
    def read(raw: Any) -> Any:
        outgoing = Outgoing({}, {})
        # As a page comes: whatever else it is, it is an object.
        page = _LEGACY.result(outgoing, Response(1, raw, None), Answer())
        return results.list_from_pages(cls, [(page, 1.5), (page, 2.0)], 1.0, 3.0, monotonic, **checks)

    return read


#: How each kind of result is read: from the raw value to the result.
RESULTS: Dict[str, Callable[[Any], Any]] = {
    "read": lambda raw: results.ReadResourceResult.from_wire(raw, "docs://a", *_NOW, clock=monotonic),
    "discover": lambda raw: results.DiscoverResult.from_wire(raw, *_NOW, clock=monotonic),
    "resources": _pages(results.ListResourcesResult),
    "templates": _pages(results.ListResourceTemplatesResult),
    "tools": _pages(results.ListToolsResult, problem_with=problem_with),
    "prompts": _pages(results.ListPromptsResult),
    "skills": _pages(results.ListSkillsResult, problem_with=problem_of),
    "call": lambda raw: results.CallToolResult.from_wire(raw, "tool"),
    "prompt": results.GetPromptResult.from_wire,
    "complete": results.CompleteResult.from_wire,
}


def read_result(kind: str, raw: Any) -> Any:
    """Read a result and look at everything that it shows. What fails fails by an error of the package."""
    before = copy.deepcopy(raw)
    result = tried(lambda: RESULTS[kind](raw))
    assert repr(raw) == repr(before), "reading changed what was read"
    if isinstance(result, str):
        return result
    look_at(result)
    again = pickle.loads(pickle.dumps(result))
    assert type(again) is type(result) and repr(again) == repr(result)
    if isinstance(result, results.lists.ListResult):
        assert len(result) == len(result.keys) == len(list(result))
        assert all(result.find(key) is not None for key in result.keys)
    if hasattr(result, "as_stale"):
        assert result.as_stale().stale and result.as_stale().version == result.version
        assert 0.0 <= result.ttl <= 24 * 3600.0 and result.scope in ("public", "private")
    return result


_PLAIN: Dict[Any, Tuple[type, ...]] = {
    str: (str,),
    Optional[str]: (str, type(None)),
    bool: (bool,),
    Optional[int]: (int, type(None)),
    Dict[str, Any]: (dict,),
    Tuple[str, ...]: (tuple,),
}


def look_at(thing: Any, depth: int = 6) -> None:
    """Ask a value for everything that it has: fields and properties, and of these again."""
    repr(thing)
    if depth == 0:
        return
    if isinstance(thing, (tuple, list)):
        for inner in thing:
            look_at(inner, depth - 1)
    elif dataclasses.is_dataclass(thing) or isinstance(thing, Value):
        for name, hint in get_type_hints(type(thing)).items():
            wanted = _PLAIN.get(hint)
            assert wanted is None or isinstance(getattr(thing, name), wanted), (thing, name)
        # What computes with other packages, and says so, is not asked for.
        for name in dir(type(thing)):
            if not name.startswith("_") and name not in ("variables", "clock", "raw", "SHAPE"):
                value = tried(lambda: getattr(thing, name))
                if not callable(value):
                    look_at(value, depth - 1)
