"""Faults that give another answer than the right one. Unless it says otherwise, the request is not carried out."""

import dataclasses
import json
from typing import Any, Callable, Optional, Tuple

from ..answer import Answer
from ..call import Call
from ..protocol import META_SUBSCRIPTION_ID, Item, Message, RequestId, error_response, result_response


@dataclasses.dataclass(frozen=True)
class Status:
    """An HTTP status, with any headers and body.

    :param code: the status.
    :param headers: (name, value) pairs.
    :param body: the body.
    :param content_type: its media type.
    """

    code: int
    headers: Tuple[Tuple[str, str], ...] = ()
    body: bytes = b""
    content_type: str = "text/plain"

    def __call__(self, call: Call) -> Answer:
        return Answer(status=self.code, headers=tuple(self.headers), body=self.body,
                      content_type=self.content_type if self.body else "")


@dataclasses.dataclass(frozen=True)
class Unauthorized:
    """401 with a challenge (basic/authorization, "Error Handling").

    :param challenge: the value of ``WWW-Authenticate``.
    """

    challenge: str = 'Bearer realm="mcp_sync-testing", error="invalid_token"'

    def __call__(self, call: Call) -> Answer:
        return Answer(status=401, headers=(("WWW-Authenticate", self.challenge),))


@dataclasses.dataclass(frozen=True)
class RateLimited:
    """429, or another status, with ``Retry-After``.

    :param retry_after: seconds or an HTTP date, sent as it is; ``None`` sends no such header.
    :param code: the status.
    """

    retry_after: Optional[str] = "1"
    code: int = 429

    def __call__(self, call: Call) -> Answer:
        headers = () if self.retry_after is None else (("Retry-After", str(self.retry_after)),)
        return Answer(status=self.code, headers=headers)


@dataclasses.dataclass(frozen=True)
class Redirect:
    """A redirect.

    :param code: 301, 302, 303, 307 or 308.
    :param location: the value of ``Location``.
    """

    code: int
    location: str

    def __call__(self, call: Call) -> Answer:
        return Answer(status=self.code, headers=(("Location", self.location),))


@dataclasses.dataclass(frozen=True)
class JsonRpcError:
    """A JSON-RPC error.

    :param code: its code.
    :param message: its message.
    :param data: its data; ``None`` leaves it out.
    :param http_status: the status of the HTTP answer.
    """

    code: int
    message: str = "injected"
    data: Any = None
    http_status: int = 200

    def __call__(self, call: Call) -> Answer:
        error = error_response(call.request.id, self.code, self.message, self.data)
        return Answer(items=(error,), status=self.http_status)


@dataclasses.dataclass(frozen=True)
class Result:
    """This result, to the letter: nothing is added, not even ``resultType``.

    :param result: the ``result`` of the response.
    """

    result: Any

    def __call__(self, call: Call) -> Answer:
        return Answer(items=(result_response(call.request.id, self.result),))


@dataclasses.dataclass(frozen=True)
class RawResult:
    """This result as JSON that nobody has to be able to hold in memory: ten thousand levels deep, or no JSON at all.

    For Streamable HTTP and stdio; with HTTP+SSE it is no event.

    :param text: what stands where the ``result`` of the response would.
    """

    text: str

    def __call__(self, call: Call) -> Answer:
        head = '{{"jsonrpc":"2.0","id":{},"result":'.format(json.dumps(call.request.id))
        return Answer(body=(head + self.text + "}\n").encode("utf-8"), content_type="application/json")


@dataclasses.dataclass(frozen=True)
class Edit:
    """The right result, changed. The request is carried out.

    ::

        faults.Edit(lambda result: dict(result, ttlMs="300000"))
        faults.Edit(lambda result: {name: member for name, member in result.items() if name != "cacheScope"})

    :param change: from the right result to the one to send.
    """

    change: Callable[[Message], Any]

    def __call__(self, call: Call) -> Answer:
        answer = call.proceed()
        response = answer.response
        if response is None or "result" not in response:
            return answer
        return answer.with_response(dict(response, result=self.change(response["result"])))


@dataclasses.dataclass(frozen=True)
class RawBody:
    """These bytes as the body of the answer.

    :param body: the bytes.
    :param content_type: the media type; ``""`` sends none.
    :param status: the HTTP status.
    :param chunked: whether the body is chunked; if not, the end of the connection ends it.
    """

    body: bytes
    content_type: str = "application/json"
    status: int = 200
    chunked: bool = True

    def __call__(self, call: Call) -> Answer:
        return Answer(status=self.status, body=self.body, content_type=self.content_type,
                      framing="chunked" if self.chunked else "close")


@dataclasses.dataclass(frozen=True)
class NoResponse:
    """An event stream that holds a comment and ends: no response, no error."""

    def __call__(self, call: Call) -> Answer:
        return Answer(body=b": nothing follows\n\n", events=True, framing="chunked")


@dataclasses.dataclass(frozen=True)
class Accepted202:
    """202 without a body, which is right for a notification and wrong for a request."""

    def __call__(self, call: Call) -> Answer:
        return Answer(status=202)


@dataclasses.dataclass(frozen=True)
class WrongId:
    """The right answer under another id. On a listen stream, every message names that subscription instead.

    :param value: the id; ``None`` sends ``null``.
    """

    value: RequestId

    def __call__(self, call: Call) -> Answer:
        answer = call.proceed()
        if answer.stream is not None:
            answer.stream.relabel(self.value)
            meta = {META_SUBSCRIPTION_ID: self.value}
            return answer.replace(items=tuple(_with_meta(item, meta) for item in answer.items))
        response = answer.response
        return answer if response is None else answer.with_response(dict(response, id=self.value))


@dataclasses.dataclass(frozen=True)
class NoMeta:
    """The right answer without any ``_meta``; on a listen stream, no message says which subscription it belongs to."""

    def __call__(self, call: Call) -> Answer:
        answer = call.proceed()
        if answer.stream is not None:
            answer.stream.relabel(None, with_meta=False)
        return answer.replace(items=tuple(_with_meta(item, None) for item in answer.items))


def _with_meta(item: Item, meta: Optional[Message]) -> Item:
    if isinstance(item, bytes):
        return item
    changed = dict(item)
    for part in ("params", "result"):
        if isinstance(item.get(part), dict):
            inner = {name: member for name, member in item[part].items() if name != "_meta"}
            changed[part] = inner if meta is None else dict(inner, _meta=meta)
    return changed


@dataclasses.dataclass(frozen=True)
class Prelude:
    """The right answer as an event stream, with something before it.

    :param items: messages, and bytes that go out as they are, such as ``b"id: 1\\nretry: 3000\\ndata:\\n\\n"``.
    """

    items: Tuple[Item, ...]

    def __call__(self, call: Call) -> Answer:
        answer = call.proceed()
        return answer.replace(items=tuple(self.items) + answer.items, events=True,
                              framing="chunked" if answer.framing == "length" else answer.framing)
