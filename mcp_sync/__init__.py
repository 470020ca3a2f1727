"""A blocking Model Context Protocol client that keeps resources current, for programs without an event loop.

::

    from mcp_sync import Client

    with Client("https://docs.example.com/mcp") as client:
        with client.watch("docs://service/config") as watch:
            watch.wait_until_current(timeout=10)
            print(client.read_resource("docs://service/config").text)     # from memory, and current

The map, from the bottom up; a file imports only from rows below its own:

* ``_gevent``, ``_uwsgi``, ``_value``, ``errors``, ``_worker``, ``_fork``, ``_lazy``, ``_deadline``, ``_backoff``: what is
  different under gevent, and inside uWSGI; immutable values; the error tree; the only thread maker; the only at-fork hook;
  names that are loaded at first use; one deadline carried through many steps; how long to wait before trying again.
* ``freshness``, ``jsonrpc``, ``notices``, ``uris``, ``status``, ``results``: pure rules, pure messages, pure values.
* ``tracing``: requests as spans of OpenTelemetry, in a program that uses it. ``templates``: expansion of URI templates.
* ``_eventstream``, ``_pending``, ``transports``: how messages move.
* ``cache``: entries, sequence, floor, generation, single flight; knows no protocol and no network.
* ``calling``: what goes along with one request: progress, cancellation, limits.
* ``eras``, ``sessions``, ``negotiate``, ``connection``: what messages mean; speaking with a server once it is known how; finding
  that out; one server.
* ``tool_headers``, ``schema``: which arguments of a tool are repeated in headers; whether its answers are what it promised.
* ``elicitation``, ``inputs``, ``calls``: what a user answers; who answers what a server asks for; one request to its end.
* ``reads``: what can be read, and the one way to read it, through the cache.
* ``tools``, ``tasks``: calls of tools, and those of them that last. ``skills``, ``frontmatter``: instructions for a model, and
  what is at their head.
* ``reader``, ``refresher``, ``notifier``, ``watch``, ``upkeep``, ``listening``: the stream of notices; the threads that read
  again; the thread that calls listeners; what a program holds of all this; what brings them together; the raw stream.
* ``client``: the verbs, and who owns what. ``cli``, ``demo``: a person at a terminal. ``contrib``: Django and Flask.
  ``testing``: a server to test with.
"""

import logging
from typing import TYPE_CHECKING

from ._lazy import lazily
from ._version import __version__
from .client import Client
from .errors import (
    AuthorizationError,
    Cancelled,
    ClientClosed,
    InputRequired,
    MCPSyncError,
    MessageTooLarge,
    NotSupported,
    ProtocolError,
    RequestTimeout,
    ResourceNotFound,
    ServerError,
    SkillMismatch,
    StaleError,
    TaskNotFound,
    ToolError,
    TransportError,
    UnsupportedVersion,
)

if TYPE_CHECKING:
    from .calling import Cancellation, LogMessage, Progress
    from .listening import Listening
    from .notices import (
        Notice,
        PromptsListChanged,
        ResourcesListChanged,
        ResourceUpdated,
        SubscriptionFilter,
        ToolsListChanged,
    )
    from .results import (
        AudioContent,
        BlobResourceContents,
        CallToolResult,
        CompleteResult,
        ContentBlock,
        DiscoverResult,
        EmbeddedResource,
        GetPromptResult,
        ImageContent,
        Implementation,
        LeftOut,
        ListPromptsResult,
        ListResourcesResult,
        ListResourceTemplatesResult,
        ListSkillsResult,
        ListToolsResult,
        Prompt,
        PromptArgument,
        PromptMessage,
        PromptReference,
        ReadResourceResult,
        Resource,
        ResourceLink,
        ResourceTemplate,
        ResourceTemplateReference,
        SkillEntry,
        SkillFile,
        TextContent,
        TextResourceContents,
        Tool,
        UnknownContent,
    )
    from .skills import Skill
    from .status import State, Status
    from .tasks import TaskHandle
    from .transports.stdio import Command
    from .watch import Change, Held, Snapshot, Watch
else:
    # What each file has.
    _NAMES = {
        "calling": "Cancellation LogMessage Progress",
        "listening": "Listening",
        "notices": "Notice PromptsListChanged ResourcesListChanged ResourceUpdated SubscriptionFilter ToolsListChanged",
        "results.blocks": "AudioContent ContentBlock EmbeddedResource ImageContent ResourceLink TextContent UnknownContent",
        "results.content": "BlobResourceContents ReadResourceResult TextResourceContents",
        "results.tools": "CallToolResult ListToolsResult Tool",
        "results.completion": "CompleteResult PromptReference ResourceTemplateReference",
        "results.discover": "DiscoverResult Implementation",
        "results.prompts": "GetPromptResult ListPromptsResult Prompt PromptArgument PromptMessage",
        "results.lists": "LeftOut",
        "results.catalog": "ListResourcesResult ListResourceTemplatesResult Resource ResourceTemplate",
        "results.skills": "ListSkillsResult SkillEntry SkillFile",
        "skills": "Skill",
        "status": "State Status",
        "tasks": "TaskHandle",
        "transports.stdio": "Command",
        "watch": "Change Held Snapshot Watch",
    }
    __getattr__, __dir__ = lazily(__name__, _NAMES)

__all__ = [
    "AudioContent",
    "AuthorizationError",
    "BlobResourceContents",
    "CallToolResult",
    "Cancellation",
    "Cancelled",
    "Change",
    "Client",
    "ClientClosed",
    "Command",
    "CompleteResult",
    "ContentBlock",
    "DiscoverResult",
    "EmbeddedResource",
    "GetPromptResult",
    "Held",
    "ImageContent",
    "Implementation",
    "InputRequired",
    "LeftOut",
    "ListPromptsResult",
    "ListResourceTemplatesResult",
    "ListResourcesResult",
    "ListSkillsResult",
    "ListToolsResult",
    "Listening",
    "LogMessage",
    "MCPSyncError",
    "MessageTooLarge",
    "NotSupported",
    "Notice",
    "Progress",
    "Prompt",
    "PromptArgument",
    "PromptMessage",
    "PromptReference",
    "PromptsListChanged",
    "ProtocolError",
    "ReadResourceResult",
    "RequestTimeout",
    "Resource",
    "ResourceLink",
    "ResourceNotFound",
    "ResourceTemplate",
    "ResourceTemplateReference",
    "ResourceUpdated",
    "ResourcesListChanged",
    "ServerError",
    "Skill",
    "SkillEntry",
    "SkillFile",
    "SkillMismatch",
    "Snapshot",
    "StaleError",
    "State",
    "Status",
    "SubscriptionFilter",
    "TaskHandle",
    "TaskNotFound",
    "TextContent",
    "TextResourceContents",
    "Tool",
    "ToolError",
    "ToolsListChanged",
    "TransportError",
    "UnknownContent",
    "UnsupportedVersion",
    "Watch",
    "__version__",
]

# What the application does with our log is its own choice; without one, nothing is printed.
logging.getLogger("mcp_sync").addHandler(logging.NullHandler())
