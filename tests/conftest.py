"""What holds for every test: none leaves a thread of this package behind."""

import gc
import signal
import threading
from typing import Iterator

import pytest

#: How long a thread that was told to end may take, in seconds. Only a failure reaches it.
_BOUND = 10.0


def pytest_configure() -> None:
    """Let Ctrl-C be tested also where the tests run in the background: shells have such programs ignore it, and what they
    ignore, all the programs that they start do."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def no_thread_of_ours_is_left() -> Iterator[None]:
    """Fail a test after which a thread runs that this package made, naming it.

    Threads that ran before the test (of a fixture for a whole module, say) are not its concern.
    """
    before = set(threading.enumerate())
    yield
    for thread in threading.enumerate():
        if thread.name.startswith("mcp_sync") and thread not in before:
            thread.join(_BOUND)
            assert not thread.is_alive(), "the test left the thread %s behind" % thread.name


@pytest.fixture(scope="module")
def no_garbage_of_others() -> Iterator[None]:
    """For tests that go as deep as Python does: finalisers of what others left must not be run there, since they would fail."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
