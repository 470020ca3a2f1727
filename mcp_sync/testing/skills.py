"""Skills: directories of resources, and what is listed about them.

Page: specification/stable/skills of the repository modelcontextprotocol/ext-skills (io.modelcontextprotocol/skills).
"""

import hashlib
import json
import threading
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from .protocol import INVALID_PARAMS, Message, Refusal
from .resources import Store

#: The file that every skill has.
SKILL = "/SKILL.md"


class Skill(NamedTuple):
    """One skill.

    :param frontmatter: what its entry says of its frontmatter.
    :param dynamic: whether its files have no digests.
    :param listed: whether ``skills/list`` tells of it.
    :param raw: its entry, sent as it is; ``None`` makes it from what the server holds.
    """

    frontmatter: Any
    dynamic: bool
    listed: bool
    raw: Any


class Skills:
    """All skills of one server; their files are resources like any other.

    :param store: what the server holds.

    Threads: any thread may call any method.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        # Guarded by _lock; by the URIs of their directories, in the order of insertion:
        self._skills: Dict[str, Skill] = {}
        self._had = False

    def add(self, root: str, skill: Skill) -> None:
        """Add or replace a skill."""
        with self._lock:
            self._skills[root] = skill
            self._had = True

    def remove(self, root: str) -> None:
        """Remove a skill.

        :raises KeyError: there is none with that URI.
        """
        with self._lock:
            del self._skills[root]

    @property
    def had(self) -> bool:
        """Whether there was ever one."""
        with self._lock:
            return self._had

    def entries(self, principal: Optional[str]) -> List[Tuple[str, Any]]:
        """(URI, entry) pairs of those that are listed and that a principal may see."""
        with self._lock:
            skills = [(root, skill) for root, skill in self._skills.items() if skill.listed]
        return [(root, self._entry(root, skill, principal)) for root, skill in skills
                if self._store.may_see(root + SKILL, principal)]

    def entry(self, uri: Any, principal: Optional[str]) -> Any:
        """The entry of one skill, listed or not.

        :param uri: the URI of its ``SKILL.md``.
        :raises Refusal: there is none (-32602).
        """
        root = uri[:-len(SKILL)] if isinstance(uri, str) and uri.endswith(SKILL) else None
        with self._lock:
            skill = None if root is None else self._skills.get(root)
        if root is None or skill is None or not self._store.may_see(uri, principal):
            raise Refusal(INVALID_PARAMS, "No skill is served at {}".format(uri))
        return self._entry(root, skill, principal)

    def _entry(self, root: str, skill: Skill, principal: Optional[str]) -> Any:
        if skill.raw is not None:
            return skill.raw
        files: Any = "dynamic"
        if not skill.dynamic:
            files = [_file(uri, self._store.get(uri)) for uri, _ in self._store.catalog(principal)
                     if uri.startswith(root + "/")]
        return {"uri": root + SKILL, "frontmatter": skill.frontmatter, "resources": files}

    def children(self, uri: Any, principal: Optional[str]) -> List[Tuple[str, Message]]:
        """(URI, description) pairs of what a directory holds directly ("Reading Directories").

        :raises Refusal: this is no directory (-32602).
        """
        found: Dict[str, Message] = {}
        start = "{}/".format(uri)
        for inner, description in self._store.catalog(principal):
            if inner.startswith(start):
                name, slash, _ = inner[len(start):].partition("/")
                child = start + name
                found[child] = {"uri": child, "name": name, "mimeType": "inode/directory"} if slash else description
        if not found:
            raise Refusal(INVALID_PARAMS, "{} is not a directory resource".format(uri))
        return list(found.items())


def _file(uri: str, value: Any) -> Message:
    data = value.encode("utf-8") if isinstance(value, str) else value
    if not isinstance(data, bytes):
        raise ValueError("{} is made for each read and has no digest: its skill must be dynamic".format(uri))
    return {"uri": uri, "digest": "sha256:" + hashlib.sha256(data).hexdigest(), "size": len(data)}


def skill_text(frontmatter: Dict[str, Any], body: str) -> str:
    """A ``SKILL.md``. The values are written as JSON, which is YAML as well."""
    lines = ["{}: {}".format(name, json.dumps(value)) for name, value in frontmatter.items()]
    return "\n".join(["---"] + lines + ["---", "", body])
