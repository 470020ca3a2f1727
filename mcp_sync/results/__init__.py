"""What users receive: immutable values, tolerant parsing, and ``.raw`` for all the rest.

``base.py`` says what every result is, ``kept.py`` what most of them have, ``lists.py`` what every complete list is; every other
file is one kind of answer.
"""

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .base import CacheableResult
    from .blocks import (
        AudioContent,
        ContentBlock,
        EmbeddedResource,
        ImageContent,
        ResourceLink,
        TextContent,
        UnknownContent,
    )
    from .catalog import ListResourcesResult, ListResourceTemplatesResult, Resource, ResourceTemplate
    from .completion import CompleteResult, PromptReference, ResourceTemplateReference
    from .content import BlobResourceContents, Contents, ReadResourceResult, TextResourceContents
    from .discover import DiscoverResult, Implementation
    from .lists import LeftOut, ListResult, list_from_pages
    from .prompts import GetPromptResult, ListPromptsResult, Prompt, PromptArgument, PromptMessage
    from .skills import ListSkillsResult, SkillEntry, SkillFile
    from .tools import CallToolResult, ListToolsResult, Tool
else:
    # What each file has.
    _NAMES = {
        "base": "CacheableResult",
        "blocks": "AudioContent ContentBlock EmbeddedResource ImageContent ResourceLink TextContent UnknownContent",
        "catalog": "ListResourcesResult ListResourceTemplatesResult Resource ResourceTemplate",
        "completion": "CompleteResult PromptReference ResourceTemplateReference",
        "content": "BlobResourceContents Contents ReadResourceResult TextResourceContents",
        "discover": "DiscoverResult Implementation",
        "lists": "LeftOut list_from_pages ListResult",
        "prompts": "GetPromptResult ListPromptsResult Prompt PromptArgument PromptMessage",
        "skills": "ListSkillsResult SkillEntry SkillFile",
        "tools": "CallToolResult ListToolsResult Tool",
    }
    __getattr__, __dir__ = lazily(__name__, _NAMES)

__all__ = [
    "AudioContent",
    "BlobResourceContents",
    "CacheableResult",
    "CallToolResult",
    "CompleteResult",
    "ContentBlock",
    "Contents",
    "DiscoverResult",
    "EmbeddedResource",
    "GetPromptResult",
    "ImageContent",
    "Implementation",
    "LeftOut",
    "ListPromptsResult",
    "ListResourceTemplatesResult",
    "ListResourcesResult",
    "ListResult",
    "ListSkillsResult",
    "ListToolsResult",
    "Prompt",
    "PromptArgument",
    "PromptMessage",
    "PromptReference",
    "ReadResourceResult",
    "Resource",
    "ResourceLink",
    "ResourceTemplate",
    "ResourceTemplateReference",
    "SkillEntry",
    "SkillFile",
    "TextContent",
    "TextResourceContents",
    "Tool",
    "UnknownContent",
    "list_from_pages",
]
