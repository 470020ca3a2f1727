"""Skills: what a server says of them, in ``skills/list`` and ``skills/get``. The extension of that name."""

import re
from dataclasses import dataclass, field
from typing import Any, ClassVar, Dict, Optional, Tuple

from .base import integer_field, mapping_field, text_field
from .lists import ListResult, Shape

__all__ = ["ListSkillsResult", "SkillEntry", "SkillFile", "problem_of"]

#: The file that every skill has, at the end of its URI.
_SKILL = "/SKILL.md"

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class SkillFile:
    """A file of a skill. See the extension's specification: Resources. Immutable; any thread.

    :param uri: what to read it by.
    :param path: where it is in the skill's directory.
    :param digest: the SHA-256 of its bytes, as ``sha256:`` and 64 hexadecimal digits.
    :param size: how many bytes they are.
    """

    uri: str
    path: str
    digest: str
    size: int


@dataclass(frozen=True)
class SkillEntry:
    """What a server says of a skill. See the extension's specification: Skill Entries. Immutable; any thread.

    All of it is the server's word, which is why nothing here is acted upon; :meth:`mcp_sync.Client.read_skill` verifies that the
    skill is what its entry says. A name is no identity: two skills can have the same, of one server or of several.

    :param uri: the URI of its ``SKILL.md``, which tells the skills of one server apart.
    :param frontmatter: what is at the head of that file, as JSON.
    :param files: all its files; empty if it is ``dynamic``.
    :param dynamic: whether the skill is made anew for each read, so that nothing can be verified but its frontmatter.
    :param raw: all that the server sent.
    """

    uri: str
    frontmatter: Dict[str, Any] = field(default_factory=dict, repr=False, hash=False)
    files: Tuple[SkillFile, ...] = field(default=(), repr=False)
    dynamic: bool = False
    raw: Dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def name(self) -> str:
        return text_field(self.frontmatter, "name") or ""

    @property
    def description(self) -> str:
        """What the skill is for, and when to use it."""
        return text_field(self.frontmatter, "description") or ""

    @property
    def root(self) -> str:
        """The URI of its directory, without a slash at the end."""
        return self.uri[: -len(_SKILL)] if self.uri.endswith(_SKILL) else self.uri

    @classmethod
    def from_wire(cls, raw: Any) -> Optional["SkillEntry"]:
        if not isinstance(raw, dict):
            return None
        uri = text_field(raw, "uri")
        if uri is None:
            return None
        listed = raw.get("resources")
        entry = cls(uri, mapping_field(raw, "frontmatter"), (), listed == "dynamic", raw)
        files = [_file(item, entry.root) for item in listed] if isinstance(listed, list) else []
        # A file that makes no sense is no file: problem_of() finds it missing.
        return cls(uri, entry.frontmatter, tuple(it for it in files if it is not None), entry.dynamic, raw)


def _file(raw: Any, root: str) -> Optional[SkillFile]:
    if not isinstance(raw, dict):
        return None
    uri, digest, size = text_field(raw, "uri"), text_field(raw, "digest"), integer_field(raw, "size")
    if uri is None or digest is None or size is None:
        return None
    return SkillFile(uri, uri[len(root) + 1 :] if uri.startswith(root + "/") else "", digest, size)


def problem_of(entry: SkillEntry) -> Optional[str]:
    """Return why a skill must not be loaded, as the end of a sentence; None if it may."""
    if not entry.uri.endswith(_SKILL):
        return "its URI is not that of a SKILL.md"
    if not entry.name or not entry.description:
        return "its frontmatter has no name, or no description"
    if entry.root.rpartition("/")[2] != entry.name:
        return "its name is not that of its directory"
    if entry.dynamic:
        return None
    listed = entry.raw.get("resources")
    if not isinstance(listed, list):
        return "it does not say which files it has"
    uris = {file.uri for file in entry.files}
    if len(uris) < len(listed):
        return "it lists a file twice, or one without its URI, digest and size"
    if entry.uri not in uris:
        return "it does not list its own SKILL.md"
    for file in entry.files:
        if not file.path or any(part in ("", ".", "..") for part in file.path.split("/")):
            return "it lists a file that is not in its directory"
        if not _DIGEST.fullmatch(file.digest) or file.size < 0:
            return "it lists a file with a digest or a size that is none"
    return None


@dataclass(frozen=True)
class ListSkillsResult(ListResult[SkillEntry]):
    """The skills that a server lists, all pages. Iterable; ``find()`` takes the URI of a ``SKILL.md``.

    A server need not list all its skills, or any. See the extension's specification: Listing Skills. Immutable; any thread.

    :param skills: the entries, each URI once.
    :param left_out: those that must not be loaded, by URI, and why.
    """

    SHAPE: ClassVar[Shape] = Shape("skills", "skills", SkillEntry.from_wire, "uri")

    skills: Tuple[SkillEntry, ...] = ()

    def named(self, name: str) -> Tuple[SkillEntry, ...]:
        """Return all skills of that name."""
        return tuple(entry for entry in self.skills if entry.name == name)
