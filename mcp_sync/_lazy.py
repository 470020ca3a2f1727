"""Names of a package whose files are loaded when they are first used: most programs need few of them, and start faster."""

import importlib
import sys
from typing import Any, Callable, List, Mapping, Tuple

from ._fork import held_off

__all__ = ["lazily"]


def lazily(package: str, names: Mapping[str, str]) -> Tuple[Callable[[str], Any], Callable[[], List[str]]]:
    """Return the ``__getattr__`` and the ``__dir__`` of a package (PEP 562).

    :param package: its name.
    :param names: what is in each of its files, with spaces between.
    """
    homes = {name: home for home, several in names.items() for name in several.split()}

    def load(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError("module %r has no attribute %r" % (package, name))
        with held_off():
            value = getattr(importlib.import_module("." + home, package), name)
        # From here on it is an ordinary name.
        setattr(sys.modules[package], name, value)
        return value

    def all_names() -> List[str]:
        return sorted(set(vars(sys.modules[package])).union(homes))

    return load, all_names
