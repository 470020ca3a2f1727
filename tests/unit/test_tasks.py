"""Tasks, on a server that is a list of answers: asked at its pace, answered when they ask, given up and picked up again."""

import datetime
import json
import pickle
import signal
import threading
from typing import Any, Callable, Dict, List, Optional, Tuple

import pytest

from mcp_sync.calling import CallOptions, Cancellation, Progress
from mcp_sync.errors import (
    AuthorizationError,
    Cancelled,
    ClientClosed,
    InputRequired,
    NotSupported,
    ProtocolError,
    RequestTimeout,
    ServerError,
    TaskNotFound,
    TransportError,
)
from mcp_sync.tasks import TaskHandle, Tasks

BOUND = 10.0
NAME = {"method": "elicitation/create", "params": {"message": "your name?"}}
AGE = {"method": "elicitation/create", "params": {"message": "your age?"}}
RESULT = {"content": [{"type": "text", "text": "done"}]}


def task(status: str = "working", **more: Any) -> Dict[str, Any]:
    return dict({"resultType": "complete", "taskId": "t-1", "status": status, "pollIntervalMs": 2000, "ttlMs": 60000}, **more)


DONE = task("completed", result=RESULT)


def asking(**requests: Any) -> Dict[str, Any]:
    return task("input_required", inputRequests=requests)


class Fake:
    """A server that answers from a list, a clock that only waits move, and a note of all that was asked and waited."""

    def __init__(self, *script: Any, answers: Optional[Callable[[InputRequired], Dict[str, Any]]] = None, **options: Any) -> None:
        self.script = list(script)
        self.asked: List[Tuple[str, Dict[str, Any]]] = []
        self.options: List[CallOptions] = []
        self.waits: List[float] = []
        self.now = 1000.0
        options.setdefault("uniform", lambda low, high: low)
        self.tasks = Tasks(
            self.request, answers or self.nobody, clock=lambda: self.now, pause=self.pause, **options
        )

    def request(self, method: str, params: Dict[str, Any], options: CallOptions) -> Dict[str, Any]:
        self.asked.append((method, params))
        self.options.append(options)
        if method != "tasks/get" and not (self.script and isinstance(self.script[0], tuple)):
            return {"resultType": "complete"}
        answer = self.script.pop(0)
        if isinstance(answer, tuple):
            expected, answer = answer
            assert method == expected
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)

    def pause(self, alarm: Any, seconds: float) -> None:
        self.waits.append(round(seconds, 3))
        self.now += seconds

    @staticmethod
    def nobody(asked: InputRequired) -> Dict[str, Any]:
        raise asked

    def begun(self, **more: Any) -> TaskHandle:
        return self.tasks.begun(task(resultType="task", **more), "train")

    @property
    def methods(self) -> List[str]:
        return [method for method, _ in self.asked]

    @property
    def updates(self) -> List[Any]:
        return [params["inputResponses"] for method, params in self.asked if method == "tasks/update"]


# -- asking ---------------------------------------------------------------------------------------------------------------


def test_a_task_is_asked_for_at_the_interval_of_the_server_until_it_is_done() -> None:
    fake = Fake(task(), task(pollIntervalMs=5000), DONE)
    result = fake.begun().wait()
    assert (result.text, result.tool) == ("done", "train")
    assert fake.waits == [2.0, 2.0, 5.0]
    assert fake.asked == [("tasks/get", {"taskId": "t-1"})] * 3


def test_the_interval_is_never_shorter_than_the_server_said_and_not_the_same_for_all() -> None:
    chances = []

    def uniform(low: float, high: float) -> float:
        chances.append((low, high))
        return high

    fake = Fake(DONE, uniform=uniform)
    fake.begun().wait()
    assert fake.waits == [2.4]
    assert chances[0] == (1.0, 1.2)


@pytest.mark.parametrize(
    "hint, seconds", [(0, 0.1), (1, 0.1), (1e15, 3600.0), (-1, 0.5), ("5000", 0.5), (None, 0.5), (True, 0.5), (float("nan"), 0.5)]
)
def test_an_absurd_interval_is_bounded_and_one_that_is_none_is_ours(hint: Any, seconds: float) -> None:
    fake = Fake(DONE, max_timeout=None)
    fake.begun(pollIntervalMs=hint).wait()
    assert fake.waits == [seconds]


def test_without_an_interval_a_long_task_is_asked_for_less_and_less_often() -> None:
    fake = Fake(*[task(pollIntervalMs=None)] * 5, DONE)
    fake.begun(pollIntervalMs=None).wait()
    assert fake.waits == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]


def test_a_task_that_was_done_before_anybody_asked_is_fetched_at_once() -> None:
    fake = Fake(DONE)
    assert fake.begun(status="completed").wait().text == "done"
    assert fake.waits == []


def test_a_handle_from_elsewhere_is_asked_for_at_once() -> None:
    fake = Fake(DONE)
    assert fake.tasks.handle("t-1").wait().text == "done"
    assert fake.waits == []


def test_a_second_wait_does_not_ask_sooner_than_the_interval_allows() -> None:
    fake = Fake(DONE)
    handle = fake.begun()
    for _ in range(3):
        with pytest.raises(RequestTimeout):
            handle.wait(0.5)
    assert fake.asked == []
    handle.wait(5.0)
    assert fake.waits == [0.5, 0.5, 0.5, 0.5]


def test_the_outcome_is_asked_for_once() -> None:
    fake = Fake(DONE)
    handle = fake.begun()
    handle.wait()
    assert handle.wait().text == "done"
    assert fake.methods == ["tasks/get"]


def test_each_question_has_the_limit_of_a_request_and_the_wait_has_its_own() -> None:
    fake = Fake(*[task()] * 10, timeout=1.5)
    with pytest.raises(RequestTimeout) as caught:
        fake.begun().wait(5.0)
    assert 'the task "t-1" has not ended within 5 s, and goes on: client.task()' in str(caught.value)
    assert fake.waits == [2.0, 2.0, 1.0]
    assert [options.timeout for options in fake.options] == [1.5, 1.0]
    assert fake.methods == ["tasks/get"] * 2  # nothing is cancelled: the task can be picked up


def test_without_a_limit_of_its_own_a_wait_has_that_of_the_client() -> None:
    fake = Fake(*[task()] * 10, max_timeout=3.0)
    with pytest.raises(RequestTimeout, match="within 3 s"):
        fake.begun().wait()


def test_what_was_asked_first_and_is_answered_last_does_not_bring_a_task_back() -> None:
    fake = Fake(DONE, task())
    handle = fake.begun()
    handle.refresh()
    handle.refresh()
    assert handle.status == "completed"
    assert handle.wait().text == "done"


# -- failures -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        TransportError("reset"),
        RequestTimeout("too late"),
        TransportError("bad gateway", status=502),
        ServerError("slow down", code=-32000, status=429),
    ],
)
def test_a_question_that_is_lost_is_asked_again_later(error: Exception) -> None:
    fake = Fake(error, error, DONE, uniform=lambda low, high: high)
    assert fake.begun().wait().text == "done"
    assert fake.waits == [2.4, 1.0, 2.0]


def test_the_server_is_given_the_time_that_it_asks_for() -> None:
    fake = Fake(TransportError("later", status=503, retry_after=42.0), TransportError("never", status=503, retry_after=1e9), DONE)
    fake.begun().wait(1e6)
    assert fake.waits == [2.0, 42.0, 3600.0]


def test_the_time_after_a_failure_begins_anew_when_one_question_was_answered() -> None:
    lost = TransportError("reset")
    fake = Fake(lost, lost, task(), lost, DONE, uniform=lambda low, high: high)
    fake.begun().wait()
    assert fake.waits == [2.4, 1.0, 2.0, 2.4, 1.0]


def test_failures_without_end_end_at_the_limit() -> None:
    fake = Fake(*[TransportError("reset")] * 1000, uniform=lambda low, high: high)
    with pytest.raises(RequestTimeout, match="has not ended within 100 s"):
        fake.begun().wait(100.0)


@pytest.mark.parametrize(
    "error",
    [
        AuthorizationError("no"),
        TransportError("what?", status=404),
        ServerError("broken", code=-32603),
        ClientClosed(),
    ],
)
def test_what_will_not_pass_is_raised_at_once(error: Exception) -> None:
    fake = Fake(error)
    with pytest.raises(type(error)):
        fake.begun().wait()


def test_a_task_that_vanishes_is_named() -> None:
    fake = Fake(task(), ServerError("Failed to retrieve task: Task has expired", code=-32602))
    with pytest.raises(TaskNotFound) as caught:
        fake.begun().wait()
    assert str(caught.value) == (
        "the server does not know the task t-1, or not any more: Failed to retrieve task: Task has expired (code -32602)"
    )
    assert pickle.loads(pickle.dumps(caught.value)).task_id == "t-1"


def test_a_server_that_has_no_tasks_is_told_from_one_that_lost_this_one() -> None:
    fake = Fake(ServerError("unknown method", code=-32601))
    with pytest.raises(NotSupported, match="does not know tasks/get"):
        fake.tasks.handle("t-1").wait()


@pytest.mark.parametrize(
    "answer, said",
    [
        (task("failed", error={"code": -32000, "message": "no disk", "data": {"left": 0}}), "no disk (code -32000)"),
        (task("failed", statusMessage="no disk"), "the task failed: no disk (code 0)"),
        (task("failed", error="?"), "the task failed, and the server does not say why (code 0)"),
    ],
)
def test_a_task_that_failed_raises_its_error(answer: Any, said: str) -> None:
    with pytest.raises(ServerError) as caught:
        Fake(answer).begun().wait()
    assert str(caught.value) == said


def test_the_error_of_a_task_has_what_the_server_added() -> None:
    with pytest.raises(ServerError) as caught:
        Fake(task("failed", error={"code": -32000, "message": "no disk", "data": {"left": 0}})).begun().wait()
    assert (caught.value.code, caught.value.data) == (-32000, {"left": 0})


def test_a_failed_call_of_a_tool_is_a_result() -> None:
    fake = Fake(task("completed", result=dict(RESULT, isError=True)))
    assert fake.begun().wait().is_error


def test_a_task_that_was_cancelled_says_so() -> None:
    with pytest.raises(Cancelled, match="the task was cancelled: not needed"):
        Fake(task("cancelled", statusMessage="not needed")).begun().wait()


@pytest.mark.parametrize(
    "answer", [{"resultType": "complete"}, task(None), task(7), task("completed"), task("completed", result="x")]
)
def test_nonsense_is_an_error(answer: Any) -> None:
    with pytest.raises(ProtocolError):
        Fake(answer).begun().wait()


def test_a_status_from_a_later_specification_is_waited_out() -> None:
    assert Fake(task("paused"), DONE).begun().wait().text == "done"


@pytest.mark.parametrize("created", [{}, {"taskId": ""}, {"taskId": 7}, {"taskId": "t" * 5000, "status": "working"}])
def test_a_task_without_an_id_is_an_error(created: Any) -> None:
    with pytest.raises(ProtocolError, match="without an id"):
        Fake().tasks.begun(created, "train")


# -- progress -------------------------------------------------------------------------------------------------------------


def test_what_the_server_says_meanwhile_is_told_once_each() -> None:
    told: List[Progress] = []
    half = task(statusMessage="half")
    fake = Fake(half, half, task(), task("completed", result=RESULT, statusMessage="all"))
    fake.begun(statusMessage="queued").wait(on_progress=told.append)
    assert told == [Progress(1.0, None, "queued"), Progress(2.0, None, "half"), Progress(3.0, None, "all")]


def test_an_error_of_the_programs_own_function_is_not_taken_for_one_of_the_network() -> None:
    def broken(_: Any) -> None:
        raise TransportError("another server")

    fake = Fake(task(statusMessage="half"), DONE)
    with pytest.raises(TransportError, match="another server"):
        fake.begun().wait(on_progress=broken)
    fake = Fake(asking(name=NAME), DONE, answers=broken)
    with pytest.raises(TransportError, match="another server"):
        fake.begun().wait()


# -- input ----------------------------------------------------------------------------------------------------------------


def answering(seen: "List[Any]") -> "Callable[[InputRequired], Dict[str, Any]]":
    def answers(asked: InputRequired) -> Dict[str, Any]:
        seen.append(asked.input_requests)
        return {key: {"action": "accept", "content": {"said": len(seen)}} for key in asked.input_requests}

    return answers


def said(number: int) -> Dict[str, Any]:
    return {"action": "accept", "content": {"said": number}}


def test_what_the_server_asks_for_is_answered_by_the_handlers_and_once() -> None:
    seen: List[Any] = []
    # The server takes its time to note the answer, and goes back once, as a cluster may.
    fake = Fake(asking(name=NAME), asking(name=NAME), task(), asking(name=NAME), DONE, answers=answering(seen))
    assert fake.begun().wait().text == "done"
    assert seen == [{"name": NAME}]
    assert fake.asked[1] == ("tasks/update", {"taskId": "t-1", "inputResponses": {"name": said(1)}})
    assert len(fake.updates) == 1


def test_several_inputs_are_answered_together_and_later_ones_by_themselves() -> None:
    seen: List[Any] = []
    fake = Fake(asking(name=NAME, age=AGE), asking(age=AGE, other=NAME), DONE, answers=answering(seen))
    fake.begun().wait()
    assert seen == [{"name": NAME, "age": AGE}, {"other": NAME}]
    assert fake.updates == [{"name": said(1), "age": said(1)}, {"other": said(2)}]


def test_another_question_under_a_known_name_is_another_question() -> None:
    seen: List[Any] = []
    fake = Fake(asking(name=NAME), asking(name=AGE), DONE, answers=answering(seen))
    fake.begun().wait()
    assert seen == [{"name": NAME}, {"name": AGE}]


def test_an_answer_that_was_lost_is_sent_again_and_nobody_is_asked_again() -> None:
    seen: List[Any] = []
    lost = ("tasks/update", TransportError("reset"))
    fake = Fake(asking(name=NAME), lost, asking(name=NAME), DONE, answers=answering(seen))
    fake.begun().wait()
    assert len(seen) == 1
    assert fake.updates == [{"name": said(1)}, {"name": said(1)}]


def test_an_answer_that_arrived_although_its_acknowledgement_was_lost_is_not_sent_again() -> None:
    seen: List[Any] = []
    fake = Fake(asking(name=NAME), ("tasks/update", TransportError("reset")), task(), DONE, answers=answering(seen))
    fake.begun().wait()
    assert (len(seen), len(fake.updates)) == (1, 1)


def test_an_answer_that_the_server_does_not_like_is_not_taken_for_a_task_that_vanished() -> None:
    refused = ("tasks/update", ServerError("no such name", code=-32602))
    fake = Fake(asking(name=NAME), refused, asking(name=NAME), answers=answering([]))
    with pytest.raises(ServerError, match="no such name") as caught:
        fake.begun().wait()
    assert type(caught.value) is ServerError
    gone = ServerError("no such task", code=-32602)
    fake = Fake(asking(name=NAME), ("tasks/update", gone), gone, answers=answering([]))
    with pytest.raises(TaskNotFound):
        fake.begun().wait()


def test_a_server_that_asks_without_end_is_stopped() -> None:
    seen: List[Any] = []
    fake = Fake(*[asking(**{"q%d" % number: NAME}) for number in range(10)], answers=answering(seen), max_rounds=3)
    with pytest.raises(ProtocolError, match="asked for input 3 times"):
        fake.begun().wait()
    assert len(seen) == 3


def test_without_a_handler_the_question_is_raised_and_another_process_goes_on() -> None:
    fake = Fake(asking(name=NAME))
    with pytest.raises(InputRequired) as caught:
        fake.begun().wait()
    kept = pickle.loads(pickle.dumps(caught.value))
    assert kept.input_requests == {"name": NAME}
    task_as_kept = json.loads(json.dumps(kept.task))
    # The other process; its first look still shows the old question.
    fake = Fake(asking(name=NAME), DONE)
    handle = fake.tasks.handle(task_as_kept)
    assert (handle.name, handle.status) == ("train", "input_required")
    handle.update({"name": said(1)})
    assert handle.wait().text == "done"
    assert fake.methods == ["tasks/update", "tasks/get", "tasks/get"]


def test_what_was_answered_stays_answered_in_another_process() -> None:
    seen: List[Any] = []
    fake = Fake(asking(name=NAME), answers=answering(seen))
    handle = fake.begun()
    with pytest.raises(RequestTimeout):
        handle.wait(2.5)
    other = Fake(asking(name=NAME), DONE, answers=answering(seen))
    other.tasks.handle(pickle.loads(pickle.dumps(handle))).wait()
    assert (len(seen), other.updates) == (1, [])


@pytest.mark.parametrize("requests", [None, [], "x", {}])
def test_a_question_that_is_none_is_waited_out(requests: Any) -> None:
    fake = Fake(task("input_required", inputRequests=requests), DONE, answers=answering([]))
    assert fake.begun().wait().text == "done"
    assert fake.updates == []


def test_a_question_that_is_nested_too_deeply_is_an_error() -> None:
    deep: Any = {}
    for _ in range(200000):
        deep = {"a": deep}
    with pytest.raises(ProtocolError, match="nested too deeply"):
        Fake(asking(name=deep), answers=answering([])).begun().wait()
    while deep:
        deep = deep.pop("a", None)  # piece by piece, for older interpreters


# -- handles --------------------------------------------------------------------------------------------------------------


def test_a_handle_says_what_the_server_said() -> None:
    handle = Fake().begun(createdAt="2025-11-25T10:30:00Z", statusMessage="queued")
    assert (handle.task_id, handle.method, handle.name) == ("t-1", "tools/call", "train")
    assert (handle.status, handle.status_message, handle.ended) == ("working", "queued", False)
    assert (handle.poll_interval, handle.ttl) == (2.0, 60.0)
    assert handle.created == datetime.datetime(2025, 11, 25, 10, 30, tzinfo=datetime.timezone.utc)
    assert repr(handle) == "<TaskHandle t-1 of train, working: queued>"


@pytest.mark.parametrize("ttl", [None, -1, "60000", float("inf"), False])
def test_a_lifetime_that_is_none_is_no_limit(ttl: Any) -> None:
    assert Fake().begun(ttlMs=ttl, createdAt=17).ttl is None


def test_a_handle_is_the_same_after_a_way_through_json() -> None:
    handle = Fake().begun(createdAt="2025-11-25T10:30:00Z", statusMessage="queued")
    kept = json.dumps(handle.to_dict())
    assert TaskHandle.from_dict(json.loads(kept)).to_dict() == handle.to_dict()


@pytest.mark.parametrize("data", [{}, {"task_id": ""}, {"task_id": 7}, ""])
def test_what_is_no_handle_is_refused(data: Any) -> None:
    with pytest.raises(ValueError, match="no task"):
        Fake().tasks.handle(data)


def test_strange_fields_of_a_kept_handle_are_absent() -> None:
    data = {"task_id": "t", "name": 7, "poll_interval": "x", "ttl": -1, "answered": [], "status": None, "created": 3}
    handle = TaskHandle.from_dict(data)
    assert handle.to_dict() == dict(TaskHandle("t").to_dict())


def test_a_handle_from_elsewhere_says_how_it_can_be_used() -> None:
    with pytest.raises(ValueError, match="client.task"):
        TaskHandle("t-1").refresh()


def test_a_handle_of_the_same_client_stays_itself() -> None:
    fake = Fake()
    handle = fake.begun()
    assert fake.tasks.handle(handle) is handle


# -- cancelling and closing -----------------------------------------------------------------------------------------------


def test_cancelling_is_asked_for_and_the_wait_tells_what_came_of_it() -> None:
    fake = Fake(DONE)
    handle = fake.begun()
    handle.cancel()
    assert fake.asked == [("tasks/cancel", {"taskId": "t-1"})]
    assert handle.wait().text == "done"  # it was too late


class Slow:
    """A server whose task is never done, and a program that waits for it in a thread of its own."""

    def __init__(self, way: str, cancellation: Optional[Cancellation] = None) -> None:
        self.methods: List[str] = []
        self.waiting = threading.Event()
        self.raised: List[BaseException] = []
        self.tasks = Tasks(self.request, Fake.nobody, pause=self.pause)
        self.handle = self.tasks.begun(task(pollIntervalMs=3600000), "train")
        self.way, self.cancellation = way, cancellation
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        assert self.waiting.wait(BOUND)

    def request(self, method: str, params: Dict[str, Any], options: CallOptions) -> Dict[str, Any]:
        self.methods.append(method)
        return {}

    def pause(self, alarm: Any, seconds: float) -> None:
        self.waiting.set()
        alarm.wait(min(seconds, BOUND))

    def run(self) -> None:
        try:
            getattr(self.tasks, self.way)(self.handle, None, None, self.cancellation)
        except BaseException as error:
            self.raised.append(error)

    def ended_by(self) -> BaseException:
        self.thread.join(BOUND / 2)
        assert not self.thread.is_alive()
        return self.raised[0]


def test_a_cancellation_wakes_the_wait_and_leaves_the_task() -> None:
    cancellation = Cancellation()
    slow = Slow("wait", cancellation)
    cancellation.cancel("enough")
    assert isinstance(slow.ended_by(), Cancelled)
    assert slow.methods == []


def test_who_cancels_a_call_cancels_the_task_that_became_of_it() -> None:
    cancellation = Cancellation()
    slow = Slow("finish", cancellation)
    cancellation.cancel("enough")
    assert "enough" in str(slow.ended_by())
    assert slow.methods == ["tasks/cancel"]


def test_a_task_that_cannot_be_cancelled_does_not_hide_that_the_call_was() -> None:
    cancellation = Cancellation()
    cancellation.cancel()
    fake = Fake(("tasks/cancel", TransportError("reset")))
    with pytest.raises(Cancelled, match="the wait for a task"):
        fake.tasks.finish(fake.begun(), None, None, cancellation)


def test_a_cancellation_that_came_before_the_wait_is_not_overlooked() -> None:
    cancellation = Cancellation()
    cancellation.cancel()
    fake = Fake(DONE)
    with pytest.raises(Cancelled):
        fake.tasks.handle("t-1").wait(cancellation=cancellation)
    assert fake.asked == []


def test_a_task_that_the_server_cancelled_is_not_cancelled_again() -> None:
    fake = Fake(task("cancelled"))
    with pytest.raises(Cancelled):
        fake.tasks.finish(fake.begun(), None, None, None)
    assert fake.methods == ["tasks/get"]


def test_the_end_of_the_client_ends_the_wait() -> None:
    slow = Slow("wait")
    slow.tasks.close()
    assert isinstance(slow.ended_by(), ClientClosed)
    with pytest.raises(ClientClosed):
        slow.handle.wait()


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="there is no such signal here")
@pytest.mark.parametrize("way", ["cancel", "close"])
def test_a_handler_of_a_signal_may_end_a_wait_at_any_moment(way: str) -> None:
    cancellation = Cancellation()
    main = threading.main_thread().ident or 0
    alarms: List[Any] = []

    def handle(number: int, frame: Any) -> None:
        # As if the signal had come while the thread held all that it holds while it waits.
        cancellation.cancel() if way == "cancel" else tasks.close()

    def pause(alarm: Any, seconds: float) -> None:
        alarms.append(alarm)
        with tasks._lock:
            signal.pthread_kill(main, signal.SIGUSR1)
        alarm.wait(min(seconds, BOUND))

    tasks = Tasks(lambda *asked: {}, Fake.nobody, pause=pause)
    before = signal.signal(signal.SIGUSR1, handle)
    try:
        with pytest.raises(Cancelled if way == "cancel" else ClientClosed):
            tasks.begun(task(pollIntervalMs=3600000), "train").wait(cancellation=cancellation)
    finally:
        signal.signal(signal.SIGUSR1, before)
    alarms[0].interrupt()  # again and again
    alarms[0].wait(BOUND)  # at once


def test_a_cancellation_goes_along_with_each_question() -> None:
    cancellation = Cancellation()
    fake = Fake(asking(name=NAME), DONE, answers=answering([]))
    fake.begun().wait(cancellation=cancellation)
    assert [options.cancellation for options in fake.options] == [cancellation] * 3
