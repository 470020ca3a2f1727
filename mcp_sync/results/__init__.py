"""What users receive: frozen dataclasses, tolerant parsing, and ``.raw`` for all the rest.

``base.py`` says what every result is; every other file is one kind of answer.
"""

from .base import CacheableResult
from .catalog import (
    ListResourcesResult,
    ListResourceTemplatesResult,
    Resource,
    ResourceTemplate,
    list_from_pages,
)
from .content import BlobResourceContents, Contents, ReadResourceResult, TextResourceContents
from .discover import DiscoverResult, Implementation

__all__ = [
    "BlobResourceContents",
    "CacheableResult",
    "Contents",
    "DiscoverResult",
    "Implementation",
    "ListResourceTemplatesResult",
    "ListResourcesResult",
    "ReadResourceResult",
    "Resource",
    "ResourceTemplate",
    "TextResourceContents",
    "list_from_pages",
]
