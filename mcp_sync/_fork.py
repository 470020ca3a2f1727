"""The only at-fork hook: what must be made anew in a forked child.

A child inherits copies of its parent's locks (perhaps held by threads that do not exist in the child), sockets (still used
by the parent) and the belief that threads run. Each object that owns such things registers itself here and is told, in the
child, before any other code runs, to forget them. uWSGI forks without a word to the interpreter: there they are told by its own
hook or, if that was taken away, at the first use.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from typing import Any, ContextManager, Dict, List

from . import _uwsgi

__all__ = ["catch_up", "held_off", "keep_for_ever", "register"]

_log = logging.getLogger("mcp_sync")
_registered: "weakref.WeakSet[Any]" = weakref.WeakSet()
_hooked = False

# In which process the owners were told last, or did not need to be; and by which thread of each process.
_told_in = 0
_telling: "Dict[int, threading.Event]" = {}
#: The longest that another thread is waited for which tells them, in seconds.
_TELLING_WITHIN = 10.0

#: Held while a descriptor is made that nothing here knows of yet, and while a fork is made: a child would have it unknowingly.
#: Likewise while a part of the package is loaded at its first use: a child would wait for ever for the thread that loads it.
#: Of the thread, so that a signal's handler that forks does not wait for itself.
_making = threading.RLock()

# Inherited objects that must never be finalised in the child, because their finalisers take locks that a thread of the
# parent may have held at the moment of the fork.
_never_finalised: List[Any] = []


def register(owner: Any) -> None:
    """Have ``owner.after_fork_in_child()`` called in every child forked while ``owner`` is alive."""
    _hook()
    _registered.add(owner)


def _hook() -> None:
    global _hooked, _told_in
    if not _hooked:
        _hooked = True
        _told_in = os.getpid()
        # Windows has no fork and no such function.
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
            )
        _uwsgi.after_fork(catch_up)


def catch_up() -> None:
    """Tell the owners if this is the child of a fork that nobody has told of. Any thread; cheap if not."""
    pid = os.getpid()
    if _told_in in (0, pid):
        return
    # Without a lock, which could have been held at the moment of the fork.
    mine = threading.Event()
    first = _telling.setdefault(pid, mine)
    if first is not mine:
        first.wait(_TELLING_WITHIN)
        return
    try:
        _after_fork_in_child()
    finally:
        mine.set()


def held_off() -> "ContextManager[Any]":
    """Make no fork before the end of the block, which only makes a descriptor and has it known, or loads what is needed now."""
    _hook()
    return _making


def keep_for_ever(inherited: Any) -> None:
    """Keep an inherited object alive in this child, so that its finaliser never runs."""
    _never_finalised.append(inherited)


def _before_fork() -> None:
    _making.acquire()


def _after_fork_in_parent() -> None:
    _making.release()


def _after_fork_in_child() -> None:
    global _told_in, _making
    _making = threading.RLock()
    for owner in list(_registered):
        try:
            owner.after_fork_in_child()
        except Exception:
            # An exception here would be printed by the interpreter and lost; the other owners must still be told.
            _log.exception("could not make %r anew after a fork", owner)
    _told_in = os.getpid()
