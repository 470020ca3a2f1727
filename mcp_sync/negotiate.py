"""Which revision of the protocol is spoken with a server.

There is no handshake: every request says its revision, and a server that does not speak it answers with those that it does.
See the specification, basic/versioning.
"""

from typing import Any, Mapping

from .eras.base import Era
from .eras.modern import MODERN_VERSIONS, Modern
from .errors import UnsupportedVersion

__all__ = ["first_era", "next_era"]


def first_era(client_info: Mapping[str, Any], capabilities: Mapping[str, Any]) -> Era:
    """Return the era to try first."""
    return Modern(client_info, capabilities)


def next_era(refused: UnsupportedVersion, client_info: Mapping[str, Any], capabilities: Mapping[str, Any]) -> Era:
    """Return the era to try after a server refused the last one.

    :raises UnsupportedVersion: if there is none in common.
    """
    for version in MODERN_VERSIONS:
        if version in refused.supported:
            return Modern(client_info, capabilities, version)
    raise UnsupportedVersion(
        "no revision of the protocol in common: the server speaks %s, this client %s"
        % (", ".join(refused.supported) or "none that it names", ", ".join(MODERN_VERSIONS)),
        supported=refused.supported,
    ) from refused
