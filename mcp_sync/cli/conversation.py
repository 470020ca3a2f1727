"""A call in another thread, and the main thread that meanwhile shows how far it is and puts the server's questions."""

import queue
import sys
import threading
from typing import Any, Callable, Dict, List, Mapping, Optional, TypeVar

from ..calling import Cancellation, LogMessage, Progress
from ..errors import InputRequired, beginning_of
from .asking import Asker
from .bar import Bar, columns_of
from .output import Output, complain
from .waiting import SLICE, Begun

__all__ = ["Conversation"]

_T = TypeVar("_T")

#: How long the server may take to hear that a call is cancelled, in seconds.
_FAREWELL = 1.0
#: How often the line that shows how far it is may change, in seconds.
_TICK = 0.1
#: What waits to be shown, at most. Who has more to say waits as well.
_MAX_WAITING = 100


class _Question:
    """What a server asks, and the user's answer."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        self.params = params
        self.answer: Optional[Dict[str, Any]] = None
        self.answered = threading.Event()


class Conversation:
    """What happens between a server and a user during a call. Made and held in the main thread; any thread has part in it.

    :param verbose: whether progress is told line by line.
    """

    def __init__(self, verbose: bool) -> None:
        self._errors = Output(sys.stderr)
        #: Whether there is a user who can be asked.
        self.interactive = self._errors.is_terminal and sys.stdin is not None and sys.stdin.isatty()
        #: Questions that were asked while there was nobody.
        self.in_vain: List[Mapping[str, Any]] = []
        self.cancellation = Cancellation()
        self.asker = Asker(self._errors)
        self.bar = Bar(self._errors)
        if verbose:
            self.bar.works = False
        self._verbose = verbose
        self._waiting: "queue.Queue[Callable[[], None]]" = queue.Queue(_MAX_WAITING)
        self._over = threading.Event()

    @property
    def columns(self) -> Optional[int]:
        """How wide what is said may be; None if nobody limits it."""
        return columns_of(self._errors) if self._errors.is_terminal else None

    @property
    def mark(self) -> str:
        return self._errors.mark

    def say(self, line: str) -> None:
        """Write one line to standard error, after what it complains of."""
        try:
            self._errors.line(line)
        except (OSError, ValueError):
            pass

    # -- in the thread of the call, or another one -----------------------------------------------------------------------

    def elicit(self, params: Dict[str, Any]) -> Dict[str, Any]:
        """What a client's ``on_elicitation`` is to do.

        :raises InputRequired: if there is nobody who could be asked.
        """
        if not self.interactive:
            self.in_vain.append(params)
            raise InputRequired("nobody is here who could be asked")
        question = _Question(params)
        self._put(lambda: self._ask(question))
        while not question.answered.wait(SLICE):
            if self._over.is_set():
                break
        return question.answer or {"action": "cancel"}

    def on_progress(self, progress: Progress) -> None:
        self._put(lambda: self._progressed(progress))

    def on_log(self, message: LogMessage) -> None:
        self._put(lambda: self._logged(message))

    def _put(self, event: Callable[[], None]) -> None:
        while not self._over.is_set():
            try:
                return self._waiting.put(event, timeout=SLICE)
            except queue.Full:
                pass

    def _wake(self) -> None:
        try:
            self._waiting.put_nowait(lambda: None)
        except queue.Full:
            pass

    # -- in the main thread ------------------------------------------------------------------------------------------------

    def hold(self, call: Callable[[], _T]) -> _T:
        """Return what a call returns, or raise what it raises. Ctrl-C cancels it, and tells the server so."""
        begun = Begun(call, self._wake)
        try:
            while not begun.ended.is_set():
                self._next(_TICK)
            while not self._waiting.empty():
                self._next(0.0)
        except BaseException:
            self._over.set()
            self.cancellation.cancel("the user ended it")
            begun.ended.wait(_FAREWELL)
            raise
        finally:
            self._over.set()
            self.bar.clear()
        return begun.result()

    def _next(self, seconds: float) -> None:
        try:
            event = self._waiting.get(timeout=seconds) if seconds else self._waiting.get_nowait()
        except queue.Empty:
            self.bar.tick()
            return
        event()
        if self._waiting.empty():
            self.bar.tick()

    def _ask(self, question: _Question) -> None:
        self.bar.clear()
        question.answer = self.asker.answer(question.params)
        question.answered.set()

    def _progressed(self, progress: Progress) -> None:
        self.bar.progressed(progress)
        if self._verbose:
            total = "" if progress.total is None else " of %g" % progress.total
            complain("progress: %g%s %s" % (progress.progress, total, beginning_of(progress.message or "", 500)))

    def _logged(self, message: LogMessage) -> None:
        self.bar.clear()
        who = "server" if message.logger is None else "server, " + message.logger[:100]
        complain("%s: %s: %s" % (who, message.level[:20], beginning_of(message.data, 2000)))
