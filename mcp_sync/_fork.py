"""The only at-fork hook: what must be made anew in a forked child.

A child inherits copies of its parent's locks (perhaps held by threads that do not exist in the child), sockets (still used
by the parent) and the belief that threads run. Each object that owns such things registers itself here and is told, in the
child, before any other code runs, to forget them.
"""

import logging
import os
import weakref
from typing import Any, List

__all__ = ["register"]

_log = logging.getLogger("mcp_sync")
_registered: "weakref.WeakSet[Any]" = weakref.WeakSet()
_hooked = False

# Inherited objects that must never be finalised in the child, because their finalisers take locks that a thread of the
# parent may have held at the moment of the fork.
_never_finalised: List[Any] = []


def register(owner: Any) -> None:
    """Have ``owner.after_fork_in_child()`` called in every child forked while ``owner`` is alive."""
    global _hooked
    if not _hooked:
        _hooked = True
        # Windows has no fork and no such function.
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_after_fork_in_child)
    _registered.add(owner)


def keep_for_ever(inherited: Any) -> None:
    """Keep an inherited object alive in this child, so that its finaliser never runs."""
    _never_finalised.append(inherited)


def _after_fork_in_child() -> None:
    for owner in list(_registered):
        try:
            owner.after_fork_in_child()
        except Exception:
            # An exception here would be printed by the interpreter and lost; the other owners must still be told.
            _log.exception("could not make %r anew after a fork", owner)
