"""Suggestions for arguments: what is completed, and the answer to ``completion/complete``."""

from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, Optional, Tuple

from .base import integer_field, list_field, mapping_field

__all__ = ["CompleteResult", "PromptReference", "ResourceTemplateReference"]


@dataclass(frozen=True)
class PromptReference:
    """A prompt whose argument is completed. See the specification, server/utilities/completion. Immutable; any thread.

    :param name: the prompt's name.
    """

    name: str

    def to_wire(self) -> Dict[str, Any]:
        return {"type": "ref/prompt", "name": self.name}


@dataclass(frozen=True)
class ResourceTemplateReference:
    """A template whose variable is completed. See the specification, server/utilities/completion. Immutable; any thread.

    :param uri: the template (or a URI).
    """

    uri: str

    def to_wire(self) -> Dict[str, Any]:
        return {"type": "ref/resource", "uri": self.uri}


@dataclass(frozen=True)
class CompleteResult:
    """Suggestions, the most relevant first. Iterable. See the specification, server/utilities/completion.

    Immutable; any thread.

    :param values: the suggestions.
    :param total: how many there are in all, or None if the server does not say.
    :param has_more: whether the server has more than these.
    :param raw: the ``result`` object as the server sent it.
    """

    values: Tuple[str, ...] = ()
    total: Optional[int] = None
    has_more: bool = False
    raw: Dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    @classmethod
    def from_wire(cls, raw: Any) -> "CompleteResult":
        """Read a result.

        :raises ProtocolError: if there is no list of values in it.
        """
        completion = mapping_field(raw, "completion") if isinstance(raw, dict) else {}
        values = tuple(value for value in list_field(completion, "values") if isinstance(value, str))
        total = integer_field(completion, "total")
        return cls(values, total if total is None or total >= 0 else None, completion.get("hasMore") is True, raw)
