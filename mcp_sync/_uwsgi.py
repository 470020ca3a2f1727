"""What is different inside uWSGI: it forks without the interpreter's knowing, and may have been started without threads.

Its module ``uwsgi`` is there in its processes only.
"""

import os
import sys
from typing import Any, Callable

from ._gevent import threads_are_greenlets

__all__ = ["after_fork", "is_about_to_fork", "is_here", "runs_threads"]

_imported_in = os.getpid()
_forked = False  # whether its hook was called


def is_here() -> bool:
    """Whether this is a process of uWSGI."""
    return _module() is not None


def runs_threads() -> bool:
    """Whether threads run also between requests. Those of a uWSGI without threads stand still until the next one.

    Since 2.0.27 it always has threads; before, ``--enable-threads`` was needed.
    """
    module = _module()
    return module is None or bool(getattr(module, "has_threads", True)) or threads_are_greenlets()


def is_about_to_fork() -> bool:
    """Whether this process loads the application and will then be forked, in a way that is not safe while threads run.

    A thread that waits for the interpreter's lock at that moment makes the child hang in its first switch of threads. With
    ``--py-call-uwsgi-fork-hooks`` the interpreter is told, and puts its lock right.
    """
    module = _module()
    if module is None or _forked or os.getpid() != _imported_in:
        return False
    if "py-call-uwsgi-fork-hooks" in getattr(module, "opt", ()):
        return False
    # Workers, mules and spoolers that have loaded the application themselves were forked before.
    names = ("worker_id", "mule_id", "i_am_the_spooler")
    return not any(getattr(module, name, int)() for name in names)


def after_fork(call: Callable[[], None]) -> None:
    """Have ``call`` called in each worker, besides what the application has called there. Not for sure: see below."""
    module = _module()
    if module is None:
        return
    before = getattr(module, "post_fork_hook", None)

    def post_fork_hook() -> None:
        global _forked
        _forked = True
        call()
        if before is not None:
            before()

    # There is one hook, and who sets it later (uwsgidecorators does when it is imported) takes it away.
    module.post_fork_hook = post_fork_hook


def _module() -> Any:
    return sys.modules.get("uwsgi")
