"""Copies of mcp_sync.cache for tests: as it is, or with a rule taken out of its text."""

import itertools
import sys
import types
from typing import Any, Sequence, Tuple

import mcp_sync.cache

_PATH = mcp_sync.cache.__file__
_numbers = itertools.count(1)

with open(_PATH, encoding="utf-8") as _file:
    SOURCE = _file.read()


def load(changes: Sequence[Tuple[str, str]] = ()) -> Any:
    """Return a module of its own, made from the text of ``mcp_sync/cache.py``.

    :param changes: pairs of a text, which occurs exactly once, and of what stands there instead.
    """
    source = SOURCE
    for old, new in changes:
        assert source.count(old) == 1, "the text to replace occurs %d times: %r" % (source.count(old), old)
        source = source.replace(old, new)
    module = types.ModuleType("mcp_sync._cache_copy_%d" % next(_numbers))
    module.__package__ = "mcp_sync"
    # Only for as long as the classes are made: typing looks there.
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, _PATH if not changes else "<changed cache.py>", "exec"), module.__dict__)
    finally:
        del sys.modules[module.__name__]
    return module
