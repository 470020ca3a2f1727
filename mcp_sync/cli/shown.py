"""What tools and prompts answer, as text."""

from typing import Iterable, List, Tuple

from ..results import (
    AudioContent,
    ContentBlock,
    EmbeddedResource,
    GetPromptResult,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from .output import Output, clean

__all__ = ["messages", "shown", "text_for"]


def shown(blocks: Iterable[ContentBlock]) -> Tuple[List[str], List[str]]:
    """Return the texts of blocks of content, and what is to be said of those that have none."""
    texts: List[str] = []
    others: List[str] = []
    for block in blocks:
        if isinstance(block, TextContent):
            texts.append(block.text)
        elif isinstance(block, EmbeddedResource) and isinstance(block.resource, TextResourceContents):
            texts.append(block.resource.text)
        elif isinstance(block, ResourceLink):
            texts.append(block.uri)
        else:
            others.append("%s is not shown; --json has it" % _described(block))
    return texts, others


def _described(block: ContentBlock) -> str:
    if isinstance(block, (ImageContent, AudioContent)):
        what = "an image" if isinstance(block, ImageContent) else "a sound"
        return "%s (%s, about %d bytes)" % (what, block.mime_type or "of no type", len(block.encoded) * 3 // 4)
    if isinstance(block, EmbeddedResource):
        return "%s (%s)" % (block.uri, block.resource.mime_type or "of no type")
    return "content of type %s" % (getattr(block, "type", "") or "(none)")


def messages(result: GetPromptResult) -> Tuple[List[str], List[str]]:
    """Return the messages of a prompt, each under who says it if there are several, and what is to be said of the rest."""
    parts: List[str] = []
    others: List[str] = []
    for message in result:
        texts, more = shown([message.content])
        others.extend(more)
        if len(result) > 1 and texts:
            texts[0] = "[%s]\n%s" % (clean(message.role), texts[0])
        parts.extend(texts)
    return parts, others


def text_for(output: Output, texts: Iterable[str], between: str = "\n") -> str:
    """Return texts as they are to be written: exactly, with a line's end after the last; on a terminal, without what could
    move the cursor."""
    text = between.join(text[:-1] if text.endswith("\n") else text for text in texts)
    if output.is_terminal:
        text = "\n".join("\t".join(clean(part) for part in line.split("\t")) for line in text.replace("\r\n", "\n").split("\n"))
    return text + "\n" if text else ""
