"""What is different under gevent: threads are greenlets, and live on in a forked child."""

import sys

__all__ = ["threads_are_greenlets"]


def threads_are_greenlets() -> bool:
    """Whether gevent has replaced what threads are made of."""
    patched = getattr(sys.modules.get("gevent.monkey"), "is_module_patched", None)
    return patched is not None and bool(patched("threading"))
