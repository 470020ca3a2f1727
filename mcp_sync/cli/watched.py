"""What ``watch`` watches, what is known of it, and who is told."""

import dataclasses
import math
import threading
from typing import Any, Dict, Iterator, List, Optional, Set

from ..client import Client
from ..errors import MCPSyncError, StaleError
from ..results import CacheableResult, ListResourcesResult
from ..status import Status
from ..watch import Change, Watch

__all__ = ["CATALOG_NAME", "Teller", "Watched"]

#: How the catalog is called where resources are called by their URIs.
CATALOG_NAME = "(catalog)"


class Watched:
    """What is watched, and what is known of it. For the main thread.

    :param uris: the resources.
    :param catalog: whether the catalog is watched.
    :param follow: whether resources that come into the catalog are watched too.
    """

    def __init__(self, client: Client, uris: List[str], catalog: bool, follow: bool) -> None:
        self.client = client
        self.uris = uris
        self.catalog = catalog
        #: Rung when there may be something to tell.
        self.bell = threading.Event()
        self._follow = follow
        self._followed: Optional[CacheableResult] = None
        self._watches: List[Watch] = []
        self._begin(uris, catalog)

    def _begin(self, uris: List[str], catalog: bool) -> None:
        def ring(_: Any) -> None:
            self.bell.set()

        self._watches.append(self.client.watch(*uris, catalog=catalog, on_change=ring, on_status=ring))

    def changes(self) -> Iterator[Change]:
        """Yield the changes that there are."""
        for one in self._watches:
            yield from one.changes(timeout=0)

    def keep_up(self) -> None:
        """Watch also what is new in the catalog, if that is wanted."""
        listed = self.held(None) if self._follow else None
        if isinstance(listed, ListResourcesResult) and listed is not self._followed:
            self._followed = listed
            known = set(self.uris)
            new = [uri for uri in listed.uris if uri not in known]
            if new:
                self.uris.extend(new)
                self._begin(new, False)

    def held(self, uri: Optional[str]) -> Optional[CacheableResult]:
        """Return the copy that is held of a resource, or of the catalog for None, without asking the server."""
        nothing_asked: Dict[str, Any] = {"stale_ok": True, "max_stale": math.inf, "timeout": 0}
        try:
            if uri is None:
                return self.client.list_resources(**nothing_asked)
            return self.client.read_resource(uri, **nothing_asked)
        except MCPSyncError:
            return None  # there is none

    def missing(self) -> Set[str]:
        """Return the URIs that do not exist, as far as is known."""
        missing: Set[str] = set()
        for one in self._watches:
            try:
                missing.update(one.snapshot().missing)
            except StaleError:
                pass  # something was not read yet
        return missing

    @property
    def is_current(self) -> bool:
        """Whether all of it is current."""
        return all(one.is_current for one in self._watches)

    @property
    def status(self) -> Status:
        first, more = self._watches[0].status, [one.status for one in self._watches[1:]]
        return dataclasses.replace(
            first,
            covered=first.covered.union(*(status.covered for status in more)),
            uncovered=first.uncovered.union(*(status.uncovered for status in more)),
        )


class Teller:
    """How the user is told."""

    def changed(self, change: Change) -> None:
        """Tell of a change."""

    def tick(self) -> None:
        """Tell of whatever else there is to tell; called several times a second."""

    def close(self) -> None:
        """Tell no more."""
