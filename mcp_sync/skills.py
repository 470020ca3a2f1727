"""Skills: directories of instructions that a server keeps for a model, read file by file, and only if they are what was listed.

See the extension's specification (``io.modelcontextprotocol/skills``): Getting a Skill, Integrity and Verification. What it asks
of a host, the program that shows skills to a model, cannot be done here: to ask the user, to say which server a skill is from,
to run nothing because a skill says so.
"""

import hashlib
import posixpath
import threading
from typing import Any, Dict, List, Optional, Tuple, Union, cast
from urllib.parse import quote

from . import _fork
from ._deadline import Clock, Deadline
from .errors import (
    MessageTooLarge,
    NotSupported,
    ProtocolError,
    ResourceNotFound,
    ServerError,
    SkillMismatch,
    beginning_of,
)
from .frontmatter import body_of, frontmatter_of, same
from .jsonrpc import INVALID_PARAMS
from .reads import DISCOVER, SKILLS, Reads, read_query
from .results.base import mapping_field
from .results.content import ReadResourceResult
from .results.discover import DiscoverResult
from .results.skills import ListSkillsResult, SkillEntry, SkillFile, problem_of

__all__ = ["EXTENSION", "Skill", "Skills"]

#: The name of the extension, in the server's ``capabilities.extensions``.
EXTENSION = "io.modelcontextprotocol/skills"

#: What every client has to accept, and no more is accepted here: files, and bytes of all of them.
_MOST_FILES = 512
_MOST_BYTES = 16 * 1024 * 1024


class Skill:
    """A skill whose ``SKILL.md`` was read, and is what its entry says.

    Other files are read when they are asked for, and not before; each is verified. Once one turns out to be another than the
    server said, the skill is not what it was, and nothing of it is read any more. Any thread.

    :ivar entry: what the server said of it when it was read; all later reads are held against this.
    :ivar text: the whole ``SKILL.md``.
    """

    def __init__(self, skills: "Skills", entry: SkillEntry) -> None:
        self._skills = skills
        self.entry = entry
        self.text = ""
        self._listed = {file.uri: file for file in entry.files}
        self._made_anew()
        self._read_bytes = 0
        self._mismatch: Optional[SkillMismatch] = None
        _fork.register(self)

    def _made_anew(self) -> None:
        self._lock = threading.Lock()  # guards the two above

    def after_fork_in_child(self) -> None:
        self._made_anew()

    @property
    def uri(self) -> str:
        """The URI of its ``SKILL.md``."""
        return self.entry.uri

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def description(self) -> str:
        return self.entry.description

    @property
    def frontmatter(self) -> Dict[str, Any]:
        """What is at the head of its ``SKILL.md``. Requests in it (``allowed-tools``) are no permissions."""
        return self.entry.frontmatter

    @property
    def body(self) -> str:
        """Its ``SKILL.md`` without the frontmatter."""
        return body_of(self.text, self.uri)

    @property
    def files(self) -> Tuple[SkillFile, ...]:
        """All its files; none are known of a dynamic skill."""
        return self.entry.files

    def read(self, path: str, *, timeout: Optional[float] = None) -> bytes:
        """Return the bytes of one of its files.

        :param path: where it is in the skill's directory, as the skill's own texts say it; or its URI.
        :param timeout: seconds; the client's by default.
        :raises SkillMismatch: if it is not what was listed, or was not listed at all; and for every file after one that was not.
        :raises ResourceNotFound: if the server does not have it any more.
        :raises MCPSyncError: whatever else went wrong (see :mod:`mcp_sync.errors`).
        """
        with self._lock:
            if self._mismatch is not None:
                raise SkillMismatch(self._mismatch.message, uri=self._mismatch.uri)
        uri = self._uri_of(path)
        try:
            data = self._skills.bytes_of(uri, self._listed.get(uri), timeout)
        except SkillMismatch as error:
            with self._lock:
                self._mismatch = error
            raise
        if self.entry.dynamic:
            with self._lock:
                self._read_bytes += len(data)
                if self._read_bytes > _MOST_BYTES:
                    raise MessageTooLarge("%s is larger than %d bytes in all" % (self.uri, _MOST_BYTES))
        return data

    def read_text(self, path: str, *, timeout: Optional[float] = None) -> str:
        """As :meth:`read`, for a file of text (UTF-8).

        :raises ProtocolError: if it is none.
        """
        return _text(self.read(path, timeout=timeout), path)

    def _uri_of(self, path: str) -> str:
        root = self.entry.root
        inside = path[len(root) + 1 :] if path.startswith(root + "/") else path
        inner = posixpath.normpath(inside)
        # Texts name files as they are, URIs with what they cannot hold encoded.
        uris = ["%s/%s" % (root, inner), "%s/%s" % (root, quote(inner))]
        for uri in uris:
            if uri in self._listed:
                return uri
        if not self.entry.dynamic or inner.split("/")[0] in ("", ".", "..") or "://" in inside:
            raise SkillMismatch("%s is not listed as a file of the skill %s" % (beginning_of(path), self.uri), uri=path)
        return uris[0]

    def __repr__(self) -> str:
        return "<Skill %s, %s>" % (self.uri, "dynamic" if self.entry.dynamic else "%d files" % len(self.files))


class Skills:
    """The skills of one client's server. Any thread.

    :param reads: how things are read, through the cache.
    :param timeout: seconds that an operation may take unless it says otherwise, or None.
    :param clock: the clock of the cache.
    """

    def __init__(self, reads: Reads, timeout: Optional[float], clock: Clock) -> None:
        self._reads = reads
        self._timeout = timeout
        self._clock = clock
        self._declared = False

    def check_declared(self, deadline: Deadline) -> None:
        """Learn that the server has skills; only then it may be asked for them.

        :raises NotSupported: if it does not say so.
        """
        if not self._declared:
            said = cast(DiscoverResult, self._reads.get(DISCOVER, deadline).result)
            if not isinstance(mapping_field(said.capabilities, "extensions").get(EXTENSION), dict):
                raise NotSupported("%s has no skills: it does not say that it has" % self._reads.connection.transport.where)
            self._declared = True

    def read(self, skill: Union[str, SkillEntry], timeout: Optional[float], dynamic_ok: bool) -> Skill:
        """Read a skill; see :meth:`mcp_sync.Client.read_skill`."""
        deadline = self._deadline(timeout, "the skill")
        self.check_declared(deadline)
        if isinstance(skill, SkillEntry):
            entry = skill
        elif "/" in skill:
            entry = self._entry(skill, deadline)
        else:
            entry = self._named(skill, deadline)
        self._check(entry, dynamic_ok)
        found = Skill(self, entry)
        found.text = _text(found.read("SKILL.md", timeout=deadline.remaining()), entry.uri)
        try:
            said = frontmatter_of(found.text, entry.uri)
        except ProtocolError as error:
            raise SkillMismatch(error.message, uri=entry.uri) from error
        if not same(said, entry.frontmatter):
            keys = [key for key in {**said, **entry.frontmatter} if not same(said.get(key), entry.frontmatter.get(key))]
            raise SkillMismatch(
                "the frontmatter of %s is not what the server says of it: %s differs"
                % (entry.uri, beginning_of(", ".join(sorted(map(str, keys))) or "a key without a value")),
                uri=entry.uri,
            )
        return found

    def bytes_of(self, uri: str, listed: Optional[SkillFile], timeout: Optional[float]) -> bytes:
        """Return the bytes of one file, verified.

        :param listed: what the server said of it; None for a file of a dynamic skill.
        :raises SkillMismatch: if it is not what the server said.
        """
        deadline = self._deadline(timeout, uri)
        if listed is None:
            return _bytes(self._content(uri, deadline, True), uri)
        began = self._clock()
        result = self._content(uri, deadline, False)
        data, problem = _verified(result, listed)
        if problem and result.started < began:
            # A copy from memory, which may be older than what was said.
            data, problem = _verified(self._content(uri, deadline, True), listed)
        if problem:
            raise SkillMismatch(
                "%s is not what the server said of it: %s. It was changed meanwhile, or on the way: read_skill() with its URI "
                "asks for the skill as it is now, for which an approval of the old one does not count" % (uri, problem),
                uri=uri,
            )
        return data

    # -- within ----------------------------------------------------------------------------------------------------------

    def _deadline(self, timeout: Optional[float], what: str) -> Deadline:
        return Deadline(self._timeout if timeout is None else timeout, what)

    def _content(self, uri: str, deadline: Deadline, refresh: bool) -> ReadResourceResult:
        return cast(ReadResourceResult, self._reads.get(read_query(uri), deadline, refresh).result)

    def _entry(self, uri: str, deadline: Deadline) -> SkillEntry:
        try:
            raw = self._reads.connection.call("skills/get", {"uri": uri}, deadline=deadline)
        except ServerError as error:
            if error.code != INVALID_PARAMS:
                raise
            raise ResourceNotFound("%s: %s" % (uri, error.message), code=error.code, data=error.data, uri=uri) from error
        entry = SkillEntry.from_wire(raw.get("skill"))
        if entry is None or entry.uri != uri:
            raise ProtocolError("the server's answer to skills/get is not about %s: %s" % (uri, beginning_of(raw)))
        return entry

    def _named(self, name: str, deadline: Deadline) -> SkillEntry:
        listed = cast(ListSkillsResult, self._reads.get(SKILLS, deadline).result)
        found = listed.named(name)
        if len(found) > 1:
            uris: List[str] = [entry.uri for entry in found]
            raise ValueError("%d skills are named %s; give the URI of one: %s" % (len(uris), name, beginning_of(" ".join(uris))))
        if found:
            return found[0]
        for item in listed.left_out:
            if item.name.endswith("/%s/SKILL.md" % name):
                raise ProtocolError("the skill %s must not be loaded: %s" % (beginning_of(item.name), item.reason))
        raise ResourceNotFound(
            "no skill named %s is listed; one that is not can be read by its URI" % beginning_of(name), uri=name
        )

    def _check(self, entry: SkillEntry, dynamic_ok: bool) -> None:
        """Refuse what must not be loaded, before anything of it is read."""
        problem = problem_of(entry)
        if problem is not None:
            raise ProtocolError("the skill %s must not be loaded: %s" % (beginning_of(entry.uri), problem))
        if entry.dynamic and not dynamic_ok:
            raise NotSupported(
                "the skill %s is made anew for each read, and its files cannot be verified: dynamic_ok=True accepts that"
                % entry.uri
            )
        size = sum(file.size for file in entry.files)
        if len(entry.files) > _MOST_FILES or size > _MOST_BYTES:
            raise MessageTooLarge(
                "the skill %s has %d files and %d bytes; at most %d and %d are accepted"
                % (entry.uri, len(entry.files), size, _MOST_FILES, _MOST_BYTES)
            )


def _bytes(result: ReadResourceResult, uri: str) -> bytes:
    """Return what a file holds.

    :raises ProtocolError: if that is not one thing, or cannot be decoded.
    """
    parts = [part for part in result.contents if part.uri == uri] or list(result.contents)
    if len(parts) != 1:
        raise ProtocolError("the server sent %d contents for the file %s" % (len(parts), beginning_of(uri)))
    return parts[0].data


def _verified(result: ReadResourceResult, listed: SkillFile) -> Tuple[bytes, str]:
    """Return what a file holds, and how it differs from what was said of it."""
    try:
        data = _bytes(result, listed.uri)
    except ProtocolError as error:
        return b"", error.message
    if len(data) != listed.size:
        return b"", "it has %d bytes and not %d" % (len(data), listed.size)
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    return (data, "") if digest == listed.digest else (b"", "its digest is %s and not %s" % (digest, listed.digest))


def _text(data: bytes, what: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ProtocolError("%s is not text (UTF-8): %s" % (beginning_of(what), beginning_of(data))) from error
