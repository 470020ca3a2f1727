"""Faults in how a listen stream is acknowledged (basic/patterns/subscriptions, "Acknowledgment").

For other requests these change nothing.
"""

import dataclasses
from typing import Any, Dict, Mapping, Sequence, Union

from ..answer import Answer
from ..call import Call
from ..protocol import META_SUBSCRIPTION_ID, RESOURCE_UPDATED, RESOURCES_LIST_CHANGED, Message, notification


@dataclasses.dataclass(frozen=True)
class NoAcknowledgement:
    """The stream opens and is never acknowledged.

    :param events: whether it carries notices all the same.
    """

    events: bool = True

    def __call__(self, call: Call) -> Answer:
        answer = call.proceed()
        if answer.stream is None:
            return answer
        if not self.events:
            answer.stream.narrow({})
        return answer.replace(items=())


@dataclasses.dataclass(frozen=True)
class AcknowledgeOnly:
    """The server agrees to less than it was asked for, and keeps to that.

    :param only: the URIs it agrees to notify about (what else was asked for is kept), or a whole filter.
    """

    only: Union[Sequence[str], Mapping[str, Any]]

    def __call__(self, call: Call) -> Answer:
        answer = call.proceed()
        if answer.stream is None:
            return answer
        covers = _acknowledged(answer)
        if isinstance(self.only, Mapping):
            covers = dict(self.only)
        else:
            covers["resourceSubscriptions"] = [self.only] if isinstance(self.only, str) else list(self.only)
        answer.stream.narrow(covers)
        return _acknowledging(answer, covers)


@dataclasses.dataclass(frozen=True)
class EmptyAcknowledgement:
    """The server agrees to nothing, and sends nothing."""

    def __call__(self, call: Call) -> Answer:
        return AcknowledgeOnly({})(call)


@dataclasses.dataclass(frozen=True)
class AcknowledgeAfterEvent:
    """A notice that was asked for comes before the acknowledgement."""

    def __call__(self, call: Call) -> Answer:
        answer = call.proceed()
        if answer.stream is None:
            return answer
        params: Message = {"_meta": {META_SUBSCRIPTION_ID: call.request.id}}
        uris = _acknowledged(answer).get("resourceSubscriptions")
        if uris:
            early = notification(RESOURCE_UPDATED, dict(params, uri=uris[0]))
        else:
            early = notification(RESOURCES_LIST_CHANGED, params)
        return answer.replace(items=(early,) + answer.items)


@dataclasses.dataclass(frozen=True)
class AcknowledgeThenEnd:
    """The stream is acknowledged and ends at once.

    :param how: an ending of ``Server.end_streams``.
    """

    how: str = "eof"

    def __call__(self, call: Call) -> Answer:
        answer = call.proceed()
        if answer.stream is not None:
            answer.stream.end(self.how)
        return answer


@dataclasses.dataclass(frozen=True)
class Mute:
    """The stream is acknowledged in full, and no notice ever comes on it; comments do."""

    def __call__(self, call: Call) -> Answer:
        answer = call.proceed()
        if answer.stream is not None:
            answer.stream.narrow({})
        return answer


def _acknowledged(answer: Answer) -> Dict[str, Any]:
    for item in answer.items:
        if isinstance(item, dict) and "notifications" in item.get("params", {}):
            return dict(item["params"]["notifications"])
    return {}


def _acknowledging(answer: Answer, covers: Message) -> Answer:
    items = []
    for item in answer.items:
        if isinstance(item, dict) and "notifications" in item.get("params", {}):
            item = dict(item, params=dict(item["params"], notifications=covers))
        items.append(item)
    return answer.replace(items=tuple(items))
