"""What every single read is held against: the contract, and what the server had when.

Times are those of the client's own clock. A version is the place of a text in its resource's history, from 0.
"""

import threading
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from mcp_sync import Change, ReadResourceResult
from mcp_sync._deadline import monotonic
from mcp_sync.notices import Notice, ResourceUpdated

_FILLER = "0123456789abcdef" * 400


class Violation(AssertionError):
    """The contract was broken."""


def text_of(uri: str, version: int) -> str:
    """The text of a version: it says which it is, and nothing of it can be missing unnoticed."""
    # One in eight is large, and its answer comes in several pieces.
    return "%d of %s\n%s" % (version, uri, _FILLER[: version * 37 % (6000 if version % 8 == 0 else 200)])


class Call(NamedTuple):
    """A call that began.

    :param thread: who calls.
    :param mode: ``"use"``, ``"stale_ok"``, ``"refresh"`` or ``"bypass"``.
    :param begun: when.
    :param noticed: the highest version that a notice had named by then.
    :param known: what was known by then: the highest version that this thread was given or a listener was told of, and when
        the read that brought it had begun.
    """

    thread: int
    uri: str
    mode: str
    begun: float
    noticed: int
    known: Tuple[int, float]


class Judge:
    """Keeps the history of each resource, and judges what is read. Any thread.

    :param uris: the resources; each of them has its first version.
    :param oldest: how old what is called fresh may be at most, in seconds.
    """

    def __init__(self, uris: List[str], oldest: float) -> None:
        self._oldest = oldest
        self._lock = threading.Lock()  # guards all of it
        # When each version began to be written, and from when on nothing older was there; None until that is sure.
        self._written: Dict[str, List[List[Optional[float]]]] = {uri: [[monotonic(), monotonic()]] for uri in uris}
        self._noticed: Dict[str, int] = {uri: 0 for uri in uris}
        self._known: Dict[Tuple[int, str], Tuple[int, float]] = {}
        self._told: Dict[str, Tuple[int, float]] = {}
        self._log: Dict[str, List[str]] = {uri: [] for uri in uris}
        self.violations: List[str] = []
        self.verdicts = {"fresh": 0, "stale": 0, "overlapping": 0, "notices": 0, "changes": 0}

    # -- what the server does --------------------------------------------------------------------------------------------

    def write_begins(self, uri: str) -> int:
        """Return the next version of a resource. It can be read from now on."""
        with self._lock:
            if self._written[uri][-1][1] is not None:
                self._written[uri].append([monotonic(), None])
            return len(self._written[uri]) - 1

    def write_ended(self, uri: str, version: int) -> None:
        """Note that whatever is read from now on is that version, or a later one."""
        with self._lock:
            self._written[uri][version][1] = monotonic()
            self._note(uri, "version %d was written" % version)

    def last(self, uri: str) -> int:
        with self._lock:
            return len(self._written[uri]) - 1

    # -- what the client learns ------------------------------------------------------------------------------------------

    def noticed(self, notice: Notice) -> None:
        """Note that the client has dealt with a notice; one that names a version names it after a ``#``."""
        if isinstance(notice, ResourceUpdated):
            uri, _, version = notice.uri.partition("#")
            with self._lock:
                self.verdicts["notices"] += 1
                self._note(uri, "a notice came: %s" % (version or "of some version"))
                if version:
                    self._noticed[uri] = max(self._noticed[uri], int(version))

    def changed(self, change: Change) -> None:
        """A listener: what it was told is known."""
        result = change.current
        if isinstance(result, ReadResourceResult) and change.uri is not None:
            version = self._version(change.uri, result, "a listener")
            with self._lock:
                self.verdicts["changes"] += 1
                self._note(change.uri, "a listener was told of version %d" % version)
                self._told[change.uri] = max(self._told.get(change.uri, (0, 0.0)), (version, result.started))

    # -- what is read ----------------------------------------------------------------------------------------------------

    def begins(self, thread: int, uri: str, mode: str) -> Call:
        """Note that a call begins."""
        with self._lock:
            known = max(self._known.get((thread, uri), (0, 0.0)), self._told.get(uri, (0, 0.0)))
            return Call(thread, uri, mode, monotonic(), self._noticed[uri], known)

    def ends(self, call: Call, result: ReadResourceResult) -> None:
        """Judge what a call was given.

        :raises Violation: if it should not have been.
        """
        version = self._version(call.uri, result, call)
        with self._lock:
            following = self._written[call.uri][version + 1 : version + 2]
            replaced = following[0][1] if following else None
        if replaced is not None and replaced < result.started:
            self._broken(call, version, result, "its read began %.3f s after there was a newer one" % (result.started - replaced))
        if call.mode in ("refresh", "bypass") and result.started < call.begun:
            self._broken(call, version, result, "its read began before the call that asked for a new one")
        if result.stale:
            if call.mode != "stale_ok":
                self._broken(call, version, result, "an old copy was given to a caller that did not ask for one")
            with self._lock:
                self.verdicts["stale"] += 1
            return
        if result.started < call.begun - self._oldest:
            self._broken(call, version, result, "it is older than anything that may be called fresh")
        if call.mode == "bypass":
            return
        if version < call.noticed:
            self._broken(call, version, result, "a notice of version %d had been read before the call began" % call.noticed)
        overlapping = False
        if version < call.known[0]:
            # Of two reads that overlap, the one that began later counts; nobody can know in which order they were answered.
            overlapping = result.started >= call.known[1]
            if not overlapping:
                self._broken(call, version, result, "version %d was known, of a read that began later" % call.known[0])
        with self._lock:
            self.verdicts["overlapping" if overlapping else "fresh"] += 1
            key = (call.thread, call.uri)
            self._known[key] = max(self._known.get(key, (0, 0.0)), (version, result.started))

    def _version(self, uri: str, result: ReadResourceResult, who: Any) -> int:
        text = result.text
        number = text.partition(" ")[0]
        version = int(number) if number.isdigit() else -1
        if not 0 <= version <= self.last(uri) or text != text_of(uri, version) or result.uri != uri:
            self._broken(who, version, result, "the server never had this there: %r" % text[:80])
        return version

    # -- words -----------------------------------------------------------------------------------------------------------

    def _note(self, uri: str, what: str) -> None:
        log = self._log[uri]
        log.append("%.4f %s" % (monotonic(), what))
        del log[:-40]

    def failed(self, why: str) -> None:
        """Note that something broke the contract that was no read."""
        with self._lock:
            self.violations.append(why)

    def _broken(self, who: Any, version: int, result: ReadResourceResult, why: str) -> None:
        with self._lock:
            log = list(self._log.get(getattr(who, "uri", result.uri), ()))
        told = "%s\n  %s\n  was given version %d%s of %s, by a read from %.4f to %.4f; it is now %.4f\n  before that:\n    %s" % (
            why,
            who,
            version,
            ", stale," if result.stale else "",
            result.uri,
            result.started,
            result.received,
            monotonic(),
            "\n    ".join(log),
        )
        self.failed(told)
        raise Violation(told)
