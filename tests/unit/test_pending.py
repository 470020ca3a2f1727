"""One channel, many who wait: each gets its own, and everybody learns of the end."""

import os
import pickle
import threading
from typing import Any, List

import pytest
from rawserver import BOUND, Outcome

from mcp_sync import _pending
from mcp_sync._deadline import Deadline
from mcp_sync._pending import Pending, Share
from mcp_sync.errors import ProtocolError, RequestTimeout, TransportError
from mcp_sync.jsonrpc import Notification, Request, Response
from mcp_sync.transports.base import Received

UPDATED = "notifications/resources/updated"
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"


class Bench:
    """The shares of a channel that nobody reads, and what nobody claimed."""

    def __init__(self) -> None:
        self.unclaimed: List[Received] = []
        self.pending = Pending("the server", self.unclaimed.append)

    def open(self, request_id: Any, timeout: float = BOUND, streaming: bool = False) -> Share:
        return self.pending.open(request_id, "a/method", Deadline(timeout), lambda share, answered: None, streaming)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def answer(request_id: Any, value: Any = None) -> Response:
    return Response(request_id, {"value": value}, None)


def updated(uri: str, **meta: Any) -> Notification:
    params = {"uri": uri}  # type: Any
    if meta:
        params["_meta"] = {SUBSCRIPTION_ID: meta["of"]}
    return Notification(UPDATED, params)


def test_answers_in_the_reverse_order_reach_those_who_asked(bench: Bench) -> None:
    first, second = bench.open(1), bench.open(2)
    bench.pending.deliver(answer(2, "b"))
    bench.pending.deliver(answer(1, "a"))
    assert list(first) == [answer(1, "a")]
    assert list(second) == [answer(2, "b")]


def test_a_number_and_its_text_are_two_ids(bench: Bench) -> None:
    number, text = bench.open(1), bench.open("1")
    bench.pending.deliver(answer("1", "text"))
    bench.pending.deliver(answer(1.0, "number"))
    assert list(number) == [answer(1.0, "number")]
    assert list(text) == [answer("1", "text")]


@pytest.mark.parametrize("came", [None, True, "1", [1], {"id": 1}, 2])
def test_an_answer_with_an_id_that_nobody_has_is_nobodys(bench: Bench, came: Any) -> None:
    share = bench.open(1)
    bench.pending.deliver(answer(came))
    assert bench.unclaimed == [answer(came)]
    bench.pending.deliver(answer(1))
    assert list(share) == [answer(1)]


def test_an_answer_that_nobody_waits_for_any_more_is_nobodys(bench: Bench) -> None:
    bench.open(1).close()
    bench.pending.deliver(answer(1))
    assert bench.unclaimed == [answer(1)]


def test_closing_an_old_share_does_not_take_the_place_of_a_new_one_of_the_same_id(bench: Bench) -> None:
    old, new = bench.open(1), bench.open(1)
    old.close()
    bench.pending.deliver(answer(1))
    assert list(new) == [answer(1)]


def test_closing_tells_once_whether_the_response_had_come() -> None:
    told: List[bool] = []
    pending = Pending("the server", lambda message: None)
    for number, answered in ((1, True), (2, False)):
        share = pending.open(number, "a/method", Deadline(BOUND), lambda share, answered: told.append(answered))
        if answered:
            pending.deliver(answer(number))
        share.close()
        share.close()
    assert told == [True, False]


def test_an_interruption_wakes_the_one_who_waits_and_stays(bench: Bench) -> None:
    share = bench.open(1)
    waiting = Outcome(lambda: next(share))
    bench.pending.interrupt()
    assert isinstance(waiting.error(), TransportError)
    bench.pending.deliver(answer(1))
    with pytest.raises(TransportError, match="interrupted"):
        next(share)
    assert share.interrupted and share.ending == "reset"


def test_a_deadline_ends_the_wait_and_a_longer_one_can_be_set_meanwhile(bench: Bench) -> None:
    with pytest.raises(RequestTimeout):
        next(bench.open(1, timeout=0.01))
    share = bench.open(2, timeout=BOUND)
    waiting = Outcome(lambda: next(share))
    share.limit(Deadline(0.01))
    assert isinstance(waiting.error(), RequestTimeout)
    share.limit(Deadline(None))
    bench.pending.deliver(answer(2))
    assert next(share) == answer(2)


def test_the_end_of_the_channel_reaches_everybody_and_whoever_comes_later(bench: Bench) -> None:
    waiting = [Outcome(bench.open(number).__next__) for number in range(3)]
    rest = Outcome(bench.pending.open_rest(Deadline(None)).__next__)
    answered = bench.open(9)
    bench.pending.deliver(answer(9))
    bench.pending.fail(TransportError("it ended with exit code 3"), "reset")
    errors = [outcome.error() for outcome in waiting + [rest, Outcome(bench.open(5).__next__)]]
    assert all("exit code 3" in str(error) for error in errors)
    # Each is an exception of its own: threads that raise one object at once mix their tracebacks.
    assert len({id(error) for error in errors}) == len(errors)
    assert str(pickle.loads(pickle.dumps(errors[0]))) == str(errors[0])
    # What had come before the end is not lost.
    assert list(answered) == [answer(9)]


def test_what_was_lost_by_overflow_is_not_hidden_by_what_comes_later(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_pending, "_MAX_WAITING", 3)
    share = bench.pending.open_rest(Deadline(BOUND))
    for number in range(7):
        bench.pending.deliver(updated("a://%d" % number))
    for _ in range(2):
        with pytest.raises(TransportError, match="more than 3 messages"):
            next(share)
    assert share.ending == "reset"


def test_everybody_who_wants_the_rest_gets_all_of_it_until_it_is_closed(bench: Bench) -> None:
    first = bench.pending.open_rest(Deadline(BOUND))
    second = bench.pending.open_rest(Deadline(BOUND))
    bench.pending.deliver(updated("a://1"))
    second.close()
    bench.pending.deliver(updated("a://2"))
    assert [next(first), next(first), next(second)] == [updated("a://1"), updated("a://2"), updated("a://1")]
    assert bench.unclaimed == []


def test_a_notice_goes_to_the_stream_that_it_names(bench: Bench) -> None:
    one, two = bench.open(1, streaming=True), bench.open(2, streaming=True)
    bench.pending.deliver(updated("a://1", of=1))
    bench.pending.deliver(updated("a://2", of=2))
    bench.pending.deliver(updated("a://3", of="1"))
    bench.pending.deliver(Notification("notifications/cancelled", {"requestId": 2}))
    assert next(one) == updated("a://1", of=1)
    assert [next(two), next(two)] == [updated("a://2", of=2), Notification("notifications/cancelled", {"requestId": 2})]
    # That of a stream that nobody has is nobody's.
    assert bench.unclaimed == [updated("a://3", of="1")]


def test_a_notice_that_names_no_stream_goes_to_all_of_them_and_to_no_call(bench: Bench) -> None:
    call, one, two = bench.open(1), bench.open(2, streaming=True), bench.open(3, streaming=True)
    bench.pending.deliver(updated("a://1"))
    bench.pending.deliver(answer(1))
    assert list(call) == [answer(1)]
    assert next(one) == next(two) == updated("a://1")


def test_what_cannot_be_read_may_have_been_a_notice_for_any_stream(bench: Bench) -> None:
    stream, rest = bench.open(2, streaming=True), bench.pending.open_rest(Deadline(BOUND))
    error = ProtocolError("not JSON")
    bench.pending.deliver(error)
    assert next(stream) is error and next(rest) is error


def test_progress_goes_to_the_call_that_it_names_and_a_request_to_nobody(bench: Bench) -> None:
    call = bench.open(7)
    progress = Notification("notifications/progress", {"progressToken": 7, "progress": 1})
    ping = Request(0, "ping", {})
    bench.pending.deliver(progress)
    bench.pending.deliver(ping)
    bench.pending.deliver(answer(7))
    assert list(call) == [progress, answer(7)]
    assert bench.unclaimed == [ping]


def test_one_request_can_be_refused_while_the_others_go_on(bench: Bench) -> None:
    first, second = bench.open(1), bench.open(2)
    assert bench.pending.refuse(1, ProtocolError("too long"))
    assert not bench.pending.refuse(3, ProtocolError("too long"))
    with pytest.raises(ProtocolError, match="too long"):
        next(first)
    bench.pending.deliver(answer(2))
    assert list(second) == [answer(2)]


def test_limits_of_silence_are_handed_to_whoever_can_keep_to_them(bench: Bench) -> None:
    told: List[Any] = []
    share = bench.pending.open_rest(Deadline(None), lambda silence, lively: told.append((silence, lively)))
    share.limit(Deadline(None), 300.0, 60.0)
    assert told == [(300.0, 60.0)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_share_whose_lock_was_held_at_a_fork_can_be_interrupted_and_closed_in_the_child(bench: Bench) -> None:
    share = bench.open(1, streaming=True)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with share._changed, bench.pending._lock:
            held.set()
            done.wait(BOUND)

    holder = threading.Thread(target=hold, daemon=True)
    holder.start()
    assert held.wait(BOUND)
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:  # pragma: no cover - the child
        try:
            share.interrupt()
            share.close()
            with pytest.raises(TransportError):
                next(bench.open(2))
            os.write(writing, b"ok")
        finally:
            os._exit(0)
    os.close(writing)
    try:
        watchdog = threading.Timer(BOUND, lambda: os.kill(pid, 9))
        watchdog.start()
        os.waitpid(pid, 0)
        watchdog.cancel()
        assert os.read(reading, 2) == b"ok"
    finally:
        done.set()
        holder.join(BOUND)
        os.close(reading)
