"""``Client``: the verbs, and who owns what."""

import time
import weakref
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
    Union,
    cast,
)
from urllib.parse import urlsplit

from . import _fork, _uwsgi
from ._deadline import Clock, Deadline, monotonic
from ._version import __version__
from .cache import ResourceCache
from .connection import Connection
from .eras.modern import TASKS
from .errors import Cancelled, ClientClosed, InputRequired, MCPSyncError, NotSupported, Raised
from .inputs import Handler, Inputs, Root
from .notices import SubscriptionFilter
from .reads import CATALOG, DISCOVER, PROMPTS, SKILLS, TEMPLATES, TOOLS, Query, Reads, read_query
from .transports.base import Transport
from .transports.streamable_http import Auth, HTTPOptions, StreamableHTTP

if TYPE_CHECKING:
    # Loaded when they are first used: see the properties at the end of the class.
    from .calling import CallOptions, Cancellation, LogMessage, Progress
    from .calls import Calls
    from .listening import Listening
    from .results import (
        CacheableResult,
        CallToolResult,
        CompleteResult,
        DiscoverResult,
        GetPromptResult,
        ListPromptsResult,
        ListResourcesResult,
        ListResourceTemplatesResult,
        ListSkillsResult,
        ListToolsResult,
        ReadResourceResult,
        SkillEntry,
    )
    from .skills import Skill, Skills
    from .status import Status
    from .tasks import TaskHandle, Tasks
    from .tools import Reference, Tools
    from .transports.stdio import Command
    from .upkeep import Upkeep
    from .watch import Change, Watch

__all__ = ["Client"]

_T = TypeVar("_T")

#: How long close() waits for threads to end, in seconds.
_CLOSE_WAIT = 1.0

#: The parts of a client that are to be closed, in this order.
_CLOSED = ("upkeep", "tasks")


class Client:
    """A blocking client of one Model Context Protocol server. Any thread; a context manager.

    Making one costs nothing: the first call connects, the first watch starts threads.

    :param target: the server's MCP endpoint, ``http://`` or ``https://``; or the command that starts it as a child process, as a
        list of texts, or as a :class:`Command` that also has an environment and a directory.
    :param auth: what ``requests`` takes: ``(user, password)``, or a callable (``requests.auth.AuthBase``), which is asked again
        for every request.
    :param headers: headers sent with every request, for example ``{"Authorization": "Bearer …"}``.
    :param timeout: seconds that a call may take, unless the call says otherwise; None for no limit.
    :param connect_timeout: seconds that one attempt to connect may take.
    :param principal: whose private copies this client keeps; see :meth:`as_principal`.
    :param share_public: whether results that the server calls public are shared among the principals of this client.
    :param max_age: seconds that a copy is current although no notice came; bounds what a silently failing network or server
        can do. Watched resources are read again before that.
    :param default_ttl: seconds that a result is current if the server gives no hint and nobody watches it.
    :param max_stale: the greatest age in seconds at which ``stale_ok=True`` accepts an old copy; None for any age.
    :param listen: False to never open a stream: watched resources are polled.
    :param poll_interval: seconds between two reads of a watched resource that the server does not notify about.
    :param poll_after: seconds after which polling begins while a lost stream is not to be had again.
    :param ack_timeout: seconds to wait for the acknowledgement of a stream.
    :param silence_timeout: seconds of silence after which a stream is taken for dead, if the server has sent signs of life on
        it (comments); without any, ``max_age`` counts.
    :param refresh_threads: how many threads read changed resources again at the same time, at most.
    :param throttle: the least seconds between two re-reads of one watched resource; up to eight times that while it changes
        without pause. Calls do not wait for it: they read for themselves what is out of date.
    :param max_entries: how many results are kept at most.
    :param max_bytes: how large the kept results may be together, in bytes.
    :param max_message_bytes: the longest message that is accepted, in bytes.
    :param verify: as in ``requests``: True, False, or the path of a bundle of certificates.
    :param cert: as in ``requests``: a client certificate.
    :param proxies: as in ``requests``; None to take them from the environment.
    :param era: ``"auto"`` to find out what the server speaks; ``"modern"`` or ``"legacy"`` to try nothing else.
    :param roots: what a server is told of the program's root directories: URIs, or the protocol's ``Root`` objects.
    :param on_sampling: answers ``sampling/createMessage``: a function from its parameters to the protocol's result.
    :param on_elicitation: answers ``elicitation/create``: a function from its parameters to the values of the form; what it
        leaves out is taken from the form's defaults. True accepts the form as it is, None declines, and the protocol's own
        result is sent unchanged. One that raises :class:`InputRequired` leaves the answer to whoever made the call: it raises
        one that can be resumed later (a legacy server, which waits for the answer, is told that the form was dismissed).
        These functions run in the thread of the call that the server asks in, or in one of their
        own if a legacy server asks unprompted.
    :param elicitation_modes: what ``on_elicitation`` can do: ``"form"``, ``"url"``, or both.
    :param input_required_max_rounds: how often a server may ask for input before it answers one request.
    :param max_timeout: seconds that a call may take in all, however much progress it makes and however long it takes a user to
        answer what the server asks meanwhile; None for no limit.
    :param client_info: the name and version that the server is told; this package's by default.
    :raises ValueError: for a URL or a header that cannot be sent.
    """

    def __init__(
        self,
        target: "Union[str, Sequence[str], Command]",
        *,
        auth: Auth = None,
        headers: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = 30.0,
        connect_timeout: float = 10.0,
        principal: str = "",
        share_public: bool = False,
        max_age: float = 300.0,
        default_ttl: float = 0.0,
        max_stale: Optional[float] = 3600.0,
        listen: bool = True,
        poll_interval: float = 30.0,
        poll_after: float = 10.0,
        ack_timeout: float = 10.0,
        silence_timeout: float = 60.0,
        refresh_threads: int = 4,
        throttle: float = 0.25,
        max_entries: int = 20000,
        max_bytes: int = 64 * 1024 * 1024,
        max_message_bytes: int = 64 * 1024 * 1024,
        verify: Union[bool, str] = True,
        cert: Any = None,
        proxies: Optional[Mapping[str, str]] = None,
        era: str = "auto",
        roots: Iterable[Root] = (),
        on_sampling: Optional[Handler] = None,
        on_elicitation: Optional[Handler] = None,
        elicitation_modes: Iterable[str] = ("form",),
        input_required_max_rounds: int = 10,
        max_timeout: Optional[float] = 3600.0,
        client_info: Optional[Mapping[str, Any]] = None
    ) -> None:
        transport: Transport
        if isinstance(target, str):
            options = HTTPOptions(
                target,
                auth=auth,
                headers=headers,
                verify=verify,
                cert=cert,
                proxies=proxies,
                connect_timeout=connect_timeout,
                max_message_bytes=max_message_bytes,
            )
            transport = StreamableHTTP(options)
        else:
            with _fork.held_off():
                from .transports.stdio import Command, Stdio
            if auth is not None or headers:
                raise ValueError("a server over stdio takes its credentials from its environment: Command(argv, env=...)")
            command = target if isinstance(target, Command) else Command(target)
            transport = Stdio(command, max_message_bytes)
        self._era = era
        self._inputs = Inputs(roots, on_sampling, on_elicitation, elicitation_modes)
        self._max_rounds = input_required_max_rounds
        self._share_public = share_public
        self._default_ttl = default_ttl
        self._max_stale = max_stale
        self._timeout = timeout
        self._max_timeout = max_timeout
        self._client_info = dict(client_info or {"name": "mcp_sync", "version": __version__})
        self._ack_timeout = ack_timeout
        self._upkeep_options: Dict[str, Any] = dict(
            listen=listen,
            max_age=max_age,
            poll_interval=poll_interval,
            poll_after=poll_after,
            ack_timeout=ack_timeout,
            silence_timeout=silence_timeout,
            refresh_threads=refresh_threads,
            throttle=throttle,
            timeout=30.0 if timeout is None else timeout,
        )
        cache: "ResourceCache[CacheableResult]" = ResourceCache(max_entries, max_bytes, monotonic)
        self._set_up(transport, cache, principal)

    def _set_up(
        self,
        transport: Transport,
        cache: "ResourceCache[CacheableResult]",
        principal: str,
    ) -> None:
        #: The server's URL, or its command in one line.
        self.where = transport.where
        self.principal = principal
        self._transport = transport
        self._cache = cache
        self._clock: Clock = cache.clock
        self._connection = Connection(
            transport,
            self._client_info,
            handlers=self._inputs.handlers,
            capabilities=self._inputs.capabilities,
            extensions={TASKS: {}},
            era=self._era,
        )
        self._reads = Reads(self._connection, cache, principal, self._share_public, self._default_ttl, self._clock)
        #: For hits.
        self._entries = cache.view()
        # Not where this process may be a forked child that nobody has told so; and not when this is closed.
        self._looks_first = not self._share_public and not _uwsgi.is_here()
        #: What is made at first use.
        self._made: Dict[str, Any] = {}
        self._closed = False
        self._others: "weakref.WeakSet[Client]" = weakref.WeakSet()

    def as_principal(self, principal: str, *, auth: Auth = None, headers: Optional[Mapping[str, str]] = None) -> "Client":
        """Return a client for another user of the same server.

        It shares the connections and the memory of this one, and keeps its own private copies: neither ever sees the other's.
        The same ``principal`` with a renewed token keeps its copies. Closing this client closes it too.

        :param principal: who it is; any text that tells users apart. Never sent.
        :param auth: that user's credentials, as for :class:`Client`.
        :param headers: that user's headers, beside and above those of this client.
        :raises NotSupported: over stdio, where a server is one user's.
        """
        if not isinstance(self._transport, StreamableHTTP):
            raise NotSupported("a server over stdio runs for one user: start another client for another")
        if auth is None and headers is None:
            raise ValueError("as_principal() needs the credentials of that principal: give auth= or headers=")
        self._check_open()
        other = object.__new__(type(self))
        for name in ("_share_public", "_default_ttl", "_max_stale", "_timeout", "_client_info", "_upkeep_options"):
            setattr(other, name, getattr(self, name))
        for name in ("_era", "_inputs", "_max_rounds", "_max_timeout", "_ack_timeout"):
            setattr(other, name, getattr(self, name))
        other._set_up(self._transport.with_auth(auth, headers), self._cache, principal)
        self._others.add(other)
        return other

    # -- resources -------------------------------------------------------------------------------------------------------

    def read_resource(
        self,
        uri: str,
        *,
        cache_mode: str = "use",
        stale_ok: bool = False,
        max_stale: Optional[float] = None,
        timeout: Optional[float] = None,
        input_responses: Optional[Mapping[str, Any]] = None,
        request_state: Optional[str] = None
    ) -> "ReadResourceResult":
        """Return what a resource holds: from memory if the copy there is current, from the server otherwise.

        What a server tells only after it has asked for input is neither kept nor shown to anybody else.

        See the specification, server/resources: Reading Resources.

        :param uri: the resource; sent as it is.
        :param cache_mode: ``"use"``; ``"refresh"`` for a read that begins now and is kept; ``"bypass"`` for one that is not.
        :param stale_ok: True to get an old copy, with ``.stale`` set, rather than an error if it cannot be read now.
        :param max_stale: the greatest age of such a copy, in seconds; the client's by default.
        :param timeout: seconds for all of it; the client's by default.
        :param input_responses: the answers that an earlier :class:`InputRequired` asked for.
        :param request_state: the state that it came with.
        :raises InputRequired: if the server asks for input that nobody here can give.
        :raises ResourceNotFound: if there is no such resource.
        :raises AuthorizationError: if it may not be read with these credentials.
        :raises StaleError: if only an older copy than ``max_stale`` could be had.
        :raises MCPSyncError: whatever else went wrong (see :mod:`mcp_sync.errors`).
        """
        # The hit, without a lock, and written out here because a million of them a second is what this package is for.
        if cache_mode == "use" and self._looks_first:
            entry = self._entries.get((self.principal, "resources/read", uri))
            if (
                entry is not None
                and entry.generation == entry.coverage.generation
                and self._clock() < entry.fresh_until
            ):
                entry.used = True
                return entry.value  # type: ignore[return-value]
        if not isinstance(uri, str):
            raise TypeError("a URI is a text, not %r" % (uri,))
        if input_responses is not None or request_state is not None:
            options = self._options(timeout, input_responses=input_responses, request_state=request_state)
            return self._asked_read(uri, lambda params: self._calls.request("resources/read", params, options))
        try:
            result = self._get(read_query(uri), cache_mode, stale_ok, max_stale, timeout)
        except InputRequired as required:
            asked = required
        else:
            return cast("ReadResourceResult", result)
        options = self._options(timeout)
        return self._asked_read(uri, lambda params: self._calls.go_on(asked, params, options))

    def list_resources(
        self,
        *,
        cache_mode: str = "use",
        stale_ok: bool = False,
        max_stale: Optional[float] = None,
        timeout: Optional[float] = None
    ) -> "ListResourcesResult":
        """Return the complete catalog, all pages. Options and errors as for :meth:`read_resource`.

        See the specification, server/resources: Listing Resources.
        """
        return cast("ListResourcesResult", self._get(CATALOG, cache_mode, stale_ok, max_stale, timeout))

    def list_resource_templates(
        self,
        *,
        cache_mode: str = "use",
        stale_ok: bool = False,
        max_stale: Optional[float] = None,
        timeout: Optional[float] = None
    ) -> "ListResourceTemplatesResult":
        """Return the complete list of templates, all pages. Options and errors as for :meth:`read_resource`.

        See the specification, server/resources: Resource Templates.
        """
        return cast("ListResourceTemplatesResult", self._get(TEMPLATES, cache_mode, stale_ok, max_stale, timeout))

    # -- tools and prompts -----------------------------------------------------------------------------------------------

    def list_tools(
        self,
        *,
        cache_mode: str = "use",
        stale_ok: bool = False,
        max_stale: Optional[float] = None,
        timeout: Optional[float] = None
    ) -> "ListToolsResult":
        """Return the complete list of tools, all pages. Options and errors as for :meth:`read_resource`.

        See the specification, server/tools: Listing Tools.
        """
        return cast("ListToolsResult", self._get(TOOLS, cache_mode, stale_ok, max_stale, timeout))

    def list_prompts(
        self,
        *,
        cache_mode: str = "use",
        stale_ok: bool = False,
        max_stale: Optional[float] = None,
        timeout: Optional[float] = None
    ) -> "ListPromptsResult":
        """Return the complete list of prompts, all pages. Options and errors as for :meth:`read_resource`.

        See the specification, server/prompts: Listing Prompts.
        """
        return cast("ListPromptsResult", self._get(PROMPTS, cache_mode, stale_ok, max_stale, timeout))

    def call_tool(
        self,
        name: str,
        arguments: Optional[Mapping[str, Any]] = None,
        *,
        timeout: Optional[float] = None,
        max_timeout: Optional[float] = None,
        on_progress: "Optional[Callable[[Progress], Any]]" = None,
        on_log: "Optional[Callable[[LogMessage], Any]]" = None,
        log_level: Optional[str] = None,
        cancellation: "Optional[Cancellation]" = None,
        input_responses: Optional[Mapping[str, Any]] = None,
        request_state: Optional[str] = None,
        meta: Optional[Mapping[str, Any]] = None,
        validate: bool = True
    ) -> "CallToolResult":
        """Call a tool. Never made a second time, unless the server has surely not carried it out.

        If the server makes a task of the call, this waits for the task (see :meth:`start_tool`): each question how it is doing
        may then take as long as the client's ``timeout`` says. See the specification, server/tools: Calling Tools.

        :param name: the tool.
        :param arguments: its arguments.
        :param timeout: seconds to wait for the answer; where ``on_progress`` is given, each progress notice begins them anew. The
            client's by default.
        :param max_timeout: seconds for all of it; the client's by default.
        :param on_progress: told of progress, in this thread. What it raises ends the call.
        :param on_log: told what the server logs meanwhile, likewise.
        :param log_level: the least level of that, ``"info"`` by default.
        :param cancellation: by what other threads can cancel the call.
        :param input_responses: the answers that an earlier :class:`InputRequired` asked for, by the server's own identifiers.
        :param request_state: the state that it came with.
        :param meta: further fields of the request's ``_meta``.
        :param validate: False to take structured content as it comes. Otherwise it has to be as the tool's ``outputSchema`` says,
            where ``mcp-sync-client[schema]`` is installed.
        :returns: the result, also where the tool says that it failed: see :meth:`CallToolResult.raise_for_error`.
        :raises InputRequired: if the server asks for input that nobody here can give. If it has a ``task``, the answers go there.
        :raises Cancelled: if it was cancelled.
        :raises MCPSyncError: whatever else went wrong (see :mod:`mcp_sync.errors`).
        """
        options = self._options(
            timeout,
            max_timeout,
            on_progress=on_progress,
            on_log=on_log,
            log_level=log_level,
            cancellation=cancellation,
            input_responses=input_responses,
            request_state=request_state,
            meta=meta,
            accept_task=True,
        )
        limit = Deadline(options.max_timeout)
        raw = self._while_open(lambda: self._tools.call(name, arguments, options, validate))
        if raw.get("resultType") == "task":
            raw = self._tasks.finish(self._tasks.begun(raw, name), limit.remaining(), on_progress, cancellation)
        return self._tools.result(name, raw, validate)

    def start_tool(
        self,
        name: str,
        arguments: Optional[Mapping[str, Any]] = None,
        *,
        timeout: Optional[float] = None,
        cancellation: "Optional[Cancellation]" = None,
        input_responses: Optional[Mapping[str, Any]] = None,
        request_state: Optional[str] = None,
        meta: Optional[Mapping[str, Any]] = None
    ) -> "Union[CallToolResult, TaskHandle]":
        """Call a tool and do not wait for it, if the server makes a task of the call: whether it does is for the server to say.

        See the extension's specification (``io.modelcontextprotocol/tasks``). Options and errors as for :meth:`call_tool`.

        :param cancellation: by what other threads can cancel this call; the task, once there is one, has its own ``cancel()``.
        :returns: the task, or the result where there is none.
        """
        options = self._options(
            timeout,
            cancellation=cancellation,
            input_responses=input_responses,
            request_state=request_state,
            meta=meta,
            accept_task=True,
        )
        raw = self._while_open(lambda: self._tools.call(name, arguments, options, True))
        return self._tasks.begun(raw, name) if raw.get("resultType") == "task" else self._tools.result(name, raw, True)

    def task(self, task: "Union[str, Mapping[str, Any], TaskHandle]") -> "TaskHandle":
        """Return the handle of a task that was begun elsewhere, or another day. Asks the server nothing.

        :param task: its id, what :meth:`TaskHandle.to_dict` gave, the ``task`` of an :class:`InputRequired`, or a handle that was
            pickled.
        :raises ValueError: if it is none of these.
        """
        return self._tasks.handle(task)

    def get_prompt(
        self,
        name: str,
        arguments: Optional[Mapping[str, str]] = None,
        *,
        timeout: Optional[float] = None,
        max_timeout: Optional[float] = None,
        on_progress: "Optional[Callable[[Progress], Any]]" = None,
        on_log: "Optional[Callable[[LogMessage], Any]]" = None,
        log_level: Optional[str] = None,
        cancellation: "Optional[Cancellation]" = None,
        input_responses: Optional[Mapping[str, Any]] = None,
        request_state: Optional[str] = None,
        meta: Optional[Mapping[str, Any]] = None
    ) -> "GetPromptResult":
        """Return a prompt, filled in. Options and errors as for :meth:`call_tool`.

        See the specification, server/prompts: Getting a Prompt.

        :param name: the prompt.
        :param arguments: its arguments; texts.
        """
        options = self._options(
            timeout,
            max_timeout,
            on_progress=on_progress,
            on_log=on_log,
            log_level=log_level,
            cancellation=cancellation,
            input_responses=input_responses,
            request_state=request_state,
            meta=meta,
        )
        return self._while_open(lambda: self._tools.prompt(name, arguments, options))

    def complete(
        self,
        ref: "Reference",
        argument: Mapping[str, str],
        context_arguments: Optional[Mapping[str, str]] = None,
        *,
        timeout: Optional[float] = None
    ) -> "CompleteResult":
        """Return suggestions for an argument. See the specification, server/utilities/completion.

        :param ref: whose argument: a :class:`PromptReference` or a :class:`ResourceTemplateReference`.
        :param argument: its ``name``, and as ``value`` what is known of its value.
        :param context_arguments: the arguments that are known already.
        :param timeout: seconds; the client's by default.
        :raises NotSupported: if the server has no suggestions.
        :raises MCPSyncError: whatever else went wrong (see :mod:`mcp_sync.errors`).
        """
        options = self._options(timeout)
        return self._while_open(lambda: self._tools.complete(ref, argument, context_arguments, options))

    # -- skills ----------------------------------------------------------------------------------------------------------

    def list_skills(
        self,
        *,
        cache_mode: str = "use",
        stale_ok: bool = False,
        max_stale: Optional[float] = None,
        timeout: Optional[float] = None
    ) -> "ListSkillsResult":
        """Return the skills that the server lists, all pages: what it says of them, and nothing of what they hold.

        Options and errors as for :meth:`read_resource`. See the extension's specification (``io.modelcontextprotocol/skills``):
        Listing Skills.

        :raises NotSupported: if the server does not say that it has skills.
        """
        deadline = Deadline(self._timeout if timeout is None else timeout, "the list of skills")
        self._while_open(lambda: self._skills.check_declared(deadline))
        return cast("ListSkillsResult", self._get(SKILLS, cache_mode, stale_ok, max_stale, deadline.remaining()))

    def read_skill(
        self, skill: "Union[str, SkillEntry]", *, dynamic_ok: bool = False, timeout: Optional[float] = None
    ) -> "Skill":
        """Read a skill's ``SKILL.md``, and make sure that it is what the server says of it: size, digest and frontmatter.

        Nothing else of it is read; :meth:`Skill.read` does, file by file. See the extension's specification
        (``io.modelcontextprotocol/skills``): Integrity and Verification.

        :param skill: an entry of :meth:`list_skills`, which a user may have approved; or the URI of a ``SKILL.md``, listed or
            not; or the name of one that is listed.
        :param dynamic_ok: True to accept a skill that is made anew for each read: only its frontmatter can be verified.
        :param timeout: seconds for all of it; the client's by default.
        :raises SkillMismatch: if it is not what the server says of it. Nothing of it is to be used.
        :raises ResourceNotFound: if there is no such skill.
        :raises ValueError: if several are listed by that name.
        :raises NotSupported: if the server has no skills, if the frontmatter takes ``mcp-sync-client[skills]``, or if it is
            dynamic.
        :raises MCPSyncError: whatever else went wrong (see :mod:`mcp_sync.errors`).
        """
        return self._while_open(lambda: self._skills.read(skill, timeout, dynamic_ok))

    # -- staying current -------------------------------------------------------------------------------------------------

    def watch(
        self,
        *uris: str,
        catalog: bool = False,
        tools: bool = False,
        prompts: bool = False,
        on_change: "Optional[Callable[[Change], Any]]" = None,
        on_status: "Optional[Callable[[Status], Any]]" = None
    ) -> "Watch":
        """Keep resources current: by the server's notices where it sends them, by polling where it does not.

        Returns at once; see :meth:`Watch.wait_until_current`. All watches of a client share one stream.

        :param uris: the resources.
        :param catalog: True to watch the catalog as well (which resources there are).
        :param tools: True to watch the list of tools as well.
        :param prompts: True to watch the list of prompts as well.
        :param on_change: called for each change; see :meth:`Watch.on_change`.
        :param on_status: called when the status has changed; see :meth:`Watch.on_status`.
        :raises ValueError: if there is nothing to watch.
        """
        if any(not isinstance(uri, str) for uri in uris):
            raise TypeError("watch() takes each URI as an argument of its own: watch(*uris)")
        wanted = (("resources", catalog), ("tools", tools), ("prompts", prompts))
        lists = tuple(name for name, is_wanted in wanted if is_wanted)
        if not uris and not lists:
            raise ValueError("nothing to watch: give URIs, catalog=True, tools=True or prompts=True")
        self._check_open()
        watch = self._upkeep.watch(uris, lists, on_change, on_status)
        watch.owner = self
        return watch

    def listen(
        self,
        *uris: str,
        resources_list_changed: bool = False,
        tools_list_changed: bool = False,
        prompts_list_changed: bool = False,
        timeout: Optional[float] = None
    ) -> "Listening":
        """Open a raw stream of notices, for a program that keeps its own books; most want :meth:`watch`.

        Waits for the server's acknowledgement. See the specification, basic/patterns/subscriptions.

        :param uris: resources whose updates are wanted.
        :param resources_list_changed: True for changes of the catalog.
        :param tools_list_changed: True for changes of the list of tools.
        :param prompts_list_changed: True for changes of the list of prompts.
        :param timeout: seconds after which it ends by itself; None for never.
        :raises RequestTimeout: if there is no acknowledgement within ``ack_timeout``.
        :raises NotSupported: if the server ends the stream instead.
        :raises MCPSyncError: whatever else went wrong (see :mod:`mcp_sync.errors`).
        """
        if any(not isinstance(uri, str) for uri in uris):
            raise TypeError("listen() takes each URI as an argument of its own: listen(*uris)")
        wanted = SubscriptionFilter(frozenset(uris), resources_list_changed, tools_list_changed, prompts_list_changed)
        if not wanted:
            raise ValueError("nothing to listen for: give URIs, or one of the *_list_changed options")
        self._check_open()
        self._revive()
        with _fork.held_off():
            from .listening import Listening
        return Listening(self._connection, wanted, self._ack_timeout, timeout)

    # -- the server ------------------------------------------------------------------------------------------------------

    def discover(self, *, cache_mode: str = "use", timeout: Optional[float] = None) -> "DiscoverResult":
        """Return what the server says of itself. See the specification, server/discover.

        :param cache_mode: as for :meth:`read_resource`.
        :param timeout: seconds; the client's by default.
        :raises MCPSyncError: whatever went wrong (see :mod:`mcp_sync.errors`).
        """
        return cast("DiscoverResult", self._get(DISCOVER, cache_mode, False, None, timeout))

    def ping(self, *, timeout: Optional[float] = None) -> None:
        """Ask the server for a sign of life. Modern servers, which have no ping, are asked what they are.

        :param timeout: seconds; the client's by default.
        :raises MCPSyncError: if there is none (see :mod:`mcp_sync.errors`).
        """
        deadline = Deadline(self._timeout if timeout is None else timeout, "ping")

        def ping() -> None:
            self._connection.settle(deadline)
            self._connection.call("ping" if self._connection.is_legacy else "server/discover", deadline=deadline)

        self._while_open(ping)

    @property
    def protocol_version(self) -> str:
        """The protocol revision that is spoken with this server; before the first answer, the one that is tried."""
        return self._connection.protocol_version

    @property
    def era(self) -> Optional[str]:
        """``"modern"`` (revision 2026-07-28 and later) or ``"legacy"``, as far as is known now; None before it was found out."""
        return self._connection.era

    @property
    def watches(self) -> "Tuple[Watch, ...]":
        """Its open watches, in the order in which they were made: for status pages and the like."""
        return self._upkeep.watches if "upkeep" in self._made else ()

    # -- end -------------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End everything: watches, streams, connections, threads. Any thread, listeners included; any number of times.

        Returns within a second or so, even if a listener or a call in another thread does not end: calls in progress fail, and
        threads that hang are left to themselves (they are daemons).
        """
        self._close(Deadline(_CLOSE_WAIT))

    def _close(self, deadline: Deadline) -> None:
        _fork.catch_up()
        # Each step can be repeated: a close() that was interrupted is finished by the next.
        self._closed, self._looks_first = True, False
        others: List[Client] = []
        found = [self]
        while found:
            # Those made from this one, and those made from them.
            found = [other for client in found for other in list(client._others)]
            others.extend(found)
        for client in [self] + others:
            client._closed, client._looks_first = True, False
            # First nothing new is begun, then what is in progress is interrupted: the other way round a thread could start a
            # request on a connection that nobody will close.
            for name in _CLOSED:
                if name in client._made:
                    client._made[name].close()
        for client in others + [self]:
            client._connection.close()
        for client in others + [self]:
            if "upkeep" in client._made:
                client._upkeep.join(deadline.remaining() or 0.0)

    @property
    def closed(self) -> bool:
        return self._closed

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        who = " as %r" % self.principal if self.principal else ""
        return "<Client of %s%s%s>" % (self.where, who, ", closed" if self._closed else "")

    # -- within ----------------------------------------------------------------------------------------------------------

    def _get(
        self, query: Query, cache_mode: str, stale_ok: bool, max_stale: Optional[float], timeout: Optional[float]
    ) -> "CacheableResult":
        if cache_mode not in ("use", "refresh", "bypass"):
            raise ValueError('cache_mode is "use", "refresh" or "bypass", not %r' % (cache_mode,))
        deadline = Deadline(self._timeout if timeout is None else timeout, str(query))

        def get() -> "CacheableResult":
            if cache_mode == "bypass":
                return self._reads.uncached(query, deadline)
            refresh = cache_mode == "refresh"
            if stale_ok:
                limit = self._max_stale if max_stale is None else max_stale
                return self._reads.get_or_stale(query, deadline, refresh, limit)
            return self._reads.get(query, deadline, refresh).result

        return self._while_open(get)

    def _asked_read(self, uri: str, request: Callable[[Dict[str, Any]], Dict[str, Any]]) -> "ReadResourceResult":
        """Read past the cache: what was told because of what a user answered is nobody else's."""
        self._check_open()
        started_at, started = time.time(), self._clock()
        raw = self._while_open(lambda: request({"uri": uri}))
        with _fork.held_off():
            from .results.content import ReadResourceResult
        return ReadResourceResult.from_wire(raw, uri, started, self._clock(), started_at, self._clock, None)

    def _revive(self) -> None:
        """Start again, in a forked child, what ran in the parent."""
        if "upkeep" in self._made:
            self._upkeep.revive()
        else:
            _fork.catch_up()

    @property
    def _upkeep(self) -> "Upkeep":
        return cast("Upkeep", self._made.get("upkeep") or self._keep("upkeep", self._make_upkeep))

    def _make_upkeep(self) -> "Upkeep":
        with _fork.held_off():
            from .upkeep import Upkeep, UpkeepOptions
        name = urlsplit(self.where).hostname or "child"
        return Upkeep(self._reads, self._connection, name, UpkeepOptions(**self._upkeep_options), self._clock)

    @property
    def _tasks(self) -> "Tasks":
        return cast("Tasks", self._made.get("tasks") or self._keep("tasks", self._make_tasks))

    def _make_tasks(self) -> "Tasks":
        with _fork.held_off():
            from .tasks import Tasks
        return Tasks(
            lambda method, params, options: self._while_open(lambda: self._calls.request(method, params, options)),
            self._inputs.answer,
            lambda raw, tool: self._tools.result(tool, raw, True),
            timeout=self._timeout,
            max_timeout=self._max_timeout,
            max_rounds=self._max_rounds,
            clock=self._clock,
        )

    @property
    def _calls(self) -> "Calls":
        with _fork.held_off():
            from .calls import Calls
        return Calls(self._connection, self._inputs, self._max_rounds)

    @property
    def _tools(self) -> "Tools":
        with _fork.held_off():
            from .tools import Tools
        return Tools(self._calls, self._reads)

    @property
    def _skills(self) -> "Skills":
        return cast("Skills", self._made.get("skills") or self._keep("skills", self._make_skills))

    def _make_skills(self) -> "Skills":
        with _fork.held_off():
            from .skills import Skills
        return Skills(self._reads, self._timeout, self._clock)

    def _keep(self, name: str, make: Callable[[], Any]) -> Any:
        """Return a part of this client that is made at first use: the same for all threads."""
        made = make()
        part = self._made.setdefault(name, made)
        if self._closed and name in _CLOSED:
            part.close()  # close() may have looked before it was there
        return part

    def _options(self, timeout: Optional[float], max_timeout: Optional[float] = None, **more: Any) -> "CallOptions":
        with _fork.held_off():
            from .calling import CallOptions
        return CallOptions(
            timeout=self._timeout if timeout is None else timeout,
            max_timeout=self._max_timeout if max_timeout is None else max_timeout,
            **more
        )

    def _while_open(self, call: Callable[[], _T]) -> _T:
        """Make a call; whatever becomes of it when the client is closed meanwhile is one error."""
        self._check_open()
        self._revive()
        try:
            return call()
        except Raised as raised:
            failed = raised.error
        except MCPSyncError as error:
            if self._closed and not isinstance(error, (ClientClosed, Cancelled)):
                raise ClientClosed("the client was closed during the call") from error
            raise
        # Here, and not where it was caught, so that nothing of ours becomes its context.
        raise failed

    def _check_open(self) -> None:
        if self._closed:
            raise ClientClosed()
