"""Prompts: the answers to ``prompts/list`` and ``prompts/get``."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Dict, Iterator, Optional, Tuple

from ..errors import ProtocolError, beginning_of
from .base import list_field, text_field
from .blocks import ContentBlock, block_from_wire
from .lists import ListResult, Shape

__all__ = ["GetPromptResult", "ListPromptsResult", "Prompt", "PromptArgument", "PromptMessage"]


@dataclass(frozen=True)
class PromptArgument:
    """An argument of a prompt. See the specification, server/prompts: Prompt. Immutable; any thread.

    :param name: its name.
    :param title: its name for people, or None.
    :param description: what it is, or None.
    :param required: whether it has to be given.
    :param raw: all that the server sent.
    """

    name: str
    title: Optional[str] = None
    description: Optional[str] = None
    required: bool = False
    raw: Dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_wire(cls, raw: Any) -> Optional["PromptArgument"]:
        if not isinstance(raw, dict):
            return None
        name = text_field(raw, "name")
        if name is None:
            return None
        return cls(name, text_field(raw, "title"), text_field(raw, "description"), raw.get("required") is True, raw)


@dataclass(frozen=True)
class Prompt:
    """A prompt that a server offers. See the specification, server/prompts: Prompt. Immutable; any thread.

    :param name: what to get it by.
    :param title: its name for people, or None.
    :param description: what it is for, or None.
    :param arguments: what it takes.
    :param raw: all that the server sent.
    """

    name: str
    title: Optional[str] = None
    description: Optional[str] = None
    arguments: Tuple[PromptArgument, ...] = ()
    raw: Dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_wire(cls, raw: Any) -> Optional["Prompt"]:
        if not isinstance(raw, dict):
            return None
        name = text_field(raw, "name")
        if name is None:
            return None
        listed = raw.get("arguments")
        found = [PromptArgument.from_wire(item) for item in listed] if isinstance(listed, list) else []
        arguments = tuple(argument for argument in found if argument is not None)
        return cls(name, text_field(raw, "title"), text_field(raw, "description"), arguments, raw)


@dataclass(frozen=True)
class ListPromptsResult(ListResult[Prompt]):
    """The complete list of prompts: the answers to ``prompts/list``, all pages. Iterable.

    See the specification, server/prompts: Listing Prompts. Immutable; any thread.

    :param prompts: the prompts, each name once.
    :param left_out: prompts that the server listed under a name that another one has already.
    """

    SHAPE: ClassVar[Shape] = Shape("prompts", "prompts", Prompt.from_wire, "name", names=True)

    prompts: Tuple[Prompt, ...] = ()

    @property
    def names(self) -> Tuple[str, ...]:
        """The names, in the server's order."""
        return self.keys


@dataclass(frozen=True)
class PromptMessage:
    """One message of a prompt. See the specification, server/prompts: PromptMessage. Immutable; any thread.

    :param role: who speaks: ``"user"`` or ``"assistant"``; empty if the server does not say.
    :param content: what is said.
    :param raw: all that the server sent.
    """

    role: str
    content: ContentBlock
    raw: Dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_wire(cls, raw: Any) -> Optional["PromptMessage"]:
        if not isinstance(raw, dict):
            return None
        return cls(text_field(raw, "role") or "", block_from_wire(raw.get("content")), raw)


@dataclass(frozen=True)
class GetPromptResult:
    """A prompt, filled in. Iterable: its messages. See the specification, server/prompts: Getting a Prompt.

    Immutable; any thread.

    :param messages: its messages, in order.
    :param description: what it is for, or None.
    :param raw: the ``result`` object as the server sent it.
    """

    messages: Tuple[PromptMessage, ...] = ()
    description: Optional[str] = None
    raw: Dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __iter__(self) -> Iterator[PromptMessage]:
        return iter(self.messages)

    def __len__(self) -> int:
        return len(self.messages)

    @classmethod
    def from_wire(cls, raw: Any) -> "GetPromptResult":
        """Read a result.

        :raises ProtocolError: if there are no messages in it.
        """
        listed = list_field(raw, "messages")
        found = [PromptMessage.from_wire(item) for item in listed]
        messages = tuple(message for message in found if message is not None)
        if listed and not messages:
            raise ProtocolError("the server sent a prompt whose messages are none: %s" % beginning_of(listed))
        return cls(messages, text_field(raw, "description"), raw)
