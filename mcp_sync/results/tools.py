"""Tools: the answers to ``tools/list`` and ``tools/call``."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Dict, Optional, Tuple

from ..errors import ProtocolError, ToolError, beginning_of
from .base import mapping_field, object_field, text_field
from .blocks import ContentBlock, TextContent, blocks_from_wire
from .lists import ListResult, Shape

__all__ = ["CallToolResult", "ListToolsResult", "Tool"]


@dataclass(frozen=True)
class Tool:
    """A tool that a server offers. See the specification, server/tools: Tool. Immutable; any thread.

    :param name: what to call it by.
    :param title: its name for people, or None.
    :param description: what it does, or None.
    :param input_schema: the JSON Schema of its arguments; empty if the server sent none that is an object.
    :param output_schema: the JSON Schema of its structured content, or None.
    :param annotations: what the server says of its behaviour (``readOnlyHint``, …). Not to be trusted unless the server is.
    :param raw: all that the server sent.
    """

    name: str
    title: Optional[str] = None
    description: Optional[str] = None
    input_schema: Dict[str, Any] = field(default_factory=dict, repr=False, hash=False)
    output_schema: Optional[Dict[str, Any]] = field(default=None, repr=False, hash=False)
    annotations: Dict[str, Any] = field(default_factory=dict, repr=False, hash=False)
    raw: Dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_wire(cls, raw: Any) -> Optional["Tool"]:
        if not isinstance(raw, dict):
            return None
        name = text_field(raw, "name")
        if name is None:
            return None
        return cls(
            name,
            text_field(raw, "title"),
            text_field(raw, "description"),
            mapping_field(raw, "inputSchema"),
            object_field(raw, "outputSchema"),
            mapping_field(raw, "annotations"),
            raw,
        )


@dataclass(frozen=True)
class ListToolsResult(ListResult[Tool]):
    """The complete list of tools: the answers to ``tools/list``, all pages. Iterable.

    See the specification, server/tools: Listing Tools. Immutable; any thread.

    :param tools: the tools, each name once.
    :param left_out: tools that the server listed, but cannot be used, and why: a second one of the same name; over streamable
        HTTP in the modern era, one whose ``x-mcp-header`` annotations break the rules.
    """

    SHAPE: ClassVar[Shape] = Shape("tools", "tools", Tool.from_wire, "name", names=True)

    tools: Tuple[Tool, ...] = ()

    @property
    def names(self) -> Tuple[str, ...]:
        """The names, in the server's order."""
        return self.keys


@dataclass(frozen=True)
class CallToolResult:
    """What a tool answered. See the specification, server/tools: Tool Result. Immutable; any thread.

    :param content: blocks of text, images and so on.
    :param structured_content: a JSON value for programs; None also if there is none.
    :param has_structured_content: whether there is one, since null is a value like any other.
    :param is_error: whether the tool failed: ``content`` then says why.
    :param raw: the ``result`` object as the server sent it.
    :param tool: the tool's name.
    """

    content: Tuple[ContentBlock, ...] = ()
    structured_content: Any = field(default=None, hash=False)
    has_structured_content: bool = False
    is_error: bool = False
    raw: Dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    tool: str = ""

    @property
    def text(self) -> str:
        """The texts of its text blocks, one below the other; empty if there is none."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextContent))

    def raise_for_error(self) -> "CallToolResult":
        """Return itself if the tool did not fail.

        :raises ToolError: if it did; the error has this result.
        """
        if self.is_error:
            said = beginning_of(self.text, 1000) if self.text.strip() else "it does not say why"
            raise ToolError("%s failed: %s" % ("the tool " + self.tool if self.tool else "the tool", said), result=self)
        return self

    @classmethod
    def from_wire(cls, raw: Any, tool: str = "") -> "CallToolResult":
        """Read a result.

        :param tool: the name of the tool that was called.
        :raises ProtocolError: if there is nothing useful in it.
        """
        if not isinstance(raw, dict):
            raise ProtocolError("the server's answer to tools/call is no object: %s" % beginning_of(raw))
        structured = "structuredContent" in raw
        is_error = raw.get("isError") is True
        if isinstance(raw.get("content"), list) or not (structured or is_error):
            content = blocks_from_wire(raw, "content")
        else:
            content = ()
        return cls(content, raw.get("structuredContent"), structured, is_error, raw, tool)
