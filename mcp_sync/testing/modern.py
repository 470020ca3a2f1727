"""The modern era (revision 2026-07-28): checks, discovery, listen streams, and how a result is dressed."""

from typing import Any, List, Optional

from .answer import Answer
from .call import Way
from .capabilities import knows_tasks, missing_tasks
from .methods import Hint, Methods
from .protocol import (
    ACKNOWLEDGED,
    FILTER_FIELDS,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    LISTEN,
    META_CLIENT_CAPABILITIES,
    META_LOG_LEVEL,
    META_SERVER_INFO,
    META_SUBSCRIPTION_ID,
    Message,
    Refusal,
    check_level,
    check_request,
    notification,
    result_response,
)
from .request import Headers, Request
from .resources import Store
from .runs import ModernInvocation
from .settings import Settings
from .streams import Stream, Streams
from .tasks import Tasks
from .waiting import Waiting


class Modern:
    """What a server of this era does with a request.

    :param settings: how the server was made.
    :param store: what it holds.
    :param streams: who listens.
    :param methods: the methods that both eras have.
    :param tasks: all tasks.

    Threads: any thread may call any method.
    """

    def __init__(self, settings: Settings, store: Store, streams: Streams, methods: Methods, tasks: Tasks) -> None:
        self._settings = settings
        self._store = store
        self._streams = streams
        self._methods = methods
        self._tasks = tasks

    def answer(self, way: Way, headers: Optional[Headers], wire: Waiting) -> Answer:
        """The ordinary answer to a request.

        :param way: the way of a request whose body is one JSON-RPC request.
        :param headers: its HTTP headers, ``None`` where there are none.
        :param wire: where its answer goes; a listen stream needs it.
        :raises Refusal: it is answered with a JSON-RPC error.
        :raises Forbidden: the principal may not see what it asked for.
        """
        request = way.request
        check_request(request.message, headers, self._settings.protocol_versions, self._settings.supported)
        if META_LOG_LEVEL in request.meta:
            check_level(request.meta[META_LOG_LEVEL])
        if headers is not None and self._settings.check_param_headers:
            self._methods.check_param_headers(request, headers)
        if request.method == LISTEN:
            return self._listen(request, wire)
        if request.method == "server/discover":
            result = self._cacheable(self._discover(), Hint())
        else:
            outcome = self._methods.run(ModernInvocation(way, self._settings.check_capabilities, self._tasks))
            result = outcome.result if outcome.hint is None else self._cacheable(outcome.result, outcome.hint)
        return Answer(items=(result_response(request.id, self.complete(result)),),
                      events=self._settings.answer == "sse",
                      framing=self._settings.stream_framing if self._settings.answer == "sse" else "length")

    def complete(self, result: Message) -> Message:
        """A result with the fields that every result has (basic/index, "ResultType" and "_meta")."""
        whole: Message = {"resultType": "complete", "_meta": {META_SERVER_INFO: self._methods.server_info()}}
        whole.update(result)
        return whole

    def _cacheable(self, result: Message, hint: Hint) -> Message:
        # server/utilities/caching, "Cacheable Results"
        result["ttlMs"] = self._settings.ttl_ms if hint.ttl_ms is None else hint.ttl_ms
        result["cacheScope"] = self._settings.cache_scope if hint.cache_scope is None else hint.cache_scope
        return result

    def _discover(self) -> Message:
        result: Message = {
            "supportedVersions": list(self._settings.protocol_versions),
            "capabilities": self._methods.capabilities(True),
        }
        if self._settings.instructions is not None:
            result["instructions"] = self._settings.instructions
        return result

    def _listen(self, request: Request, wire: Waiting) -> Answer:
        wanted = request.params.get("notifications")
        if not isinstance(wanted, dict):
            raise Refusal(INVALID_PARAMS, "params.notifications must be an object")
        covers = self._honoured(wanted, request)
        stream = Stream(covers, request.principal, self._settings.backlog, wire, request.id, self.complete({}))
        if not self._streams.add(stream, self._settings.max_streams):
            raise Refusal(INTERNAL_ERROR, "too many open streams", http_status=503)
        acknowledgement = notification(
            ACKNOWLEDGED, {"_meta": {META_SUBSCRIPTION_ID: request.id}, "notifications": covers})
        return Answer(items=(acknowledgement,), events=True, stream=stream, framing=self._settings.stream_framing)

    def _honoured(self, wanted: Message, request: Request) -> Message:
        # basic/patterns/subscriptions, "Acknowledgment": what is not supported is left out, not refused.
        covers: Message = {}
        if self._settings.list_changed:
            for field in FILTER_FIELDS.values():
                if wanted.get(field) is True:
                    covers[field] = True
        uris = wanted.get("resourceSubscriptions")
        if uris is not None and not (isinstance(uris, list) and all(isinstance(uri, str) for uri in uris)):
            raise Refusal(INVALID_PARAMS, "params.notifications.resourceSubscriptions must be a list of strings")
        if self._settings.subscribe and uris is not None:
            # A URI that has no resource yet is honoured: it may get one.
            covers["resourceSubscriptions"] = [uri for uri in uris if self._store.may_see(uri, request.principal)]
        if "taskIds" in wanted and self._methods.offers("tasks"):
            covers["taskIds"] = self._honoured_tasks(wanted["taskIds"], request)
        return covers

    def _honoured_tasks(self, ids: Any, request: Request) -> List[str]:
        if not knows_tasks(request.meta.get(META_CLIENT_CAPABILITIES)):
            raise missing_tasks()
        if not (isinstance(ids, list) and all(isinstance(id, str) for id in ids)):
            raise Refusal(INVALID_PARAMS, "params.notifications.taskIds must be a list of strings")
        known = {task.id for task in self._tasks.all() if task.request.principal == request.principal}
        return [id for id in ids if id in known]
