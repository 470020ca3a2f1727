"""What ``watch`` watches, what is known of it, and who is told."""

import dataclasses
import threading
from typing import Any, Iterator, List, Optional

from ..client import Client
from ..errors import AuthorizationError, ResourceNotFound
from ..results import CacheableResult, ListResourcesResult
from ..status import Status
from ..watch import Change, Held, Watch

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
        return self._held(uri).result

    def is_missing(self, uri: Optional[str]) -> bool:
        """Return whether a resource does not exist, or may not be seen, as far as is known."""
        held = self._held(uri)
        return held.result is None and isinstance(held.error, (AuthorizationError, ResourceNotFound))

    def _held(self, uri: Optional[str]) -> Held:
        for one in self._watches:
            if one.catalog if uri is None else uri in one.uris:
                return one.held(uri)
        return Held(None, None, False)

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
