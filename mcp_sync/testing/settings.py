"""What does not change while a server lives."""

from typing import Any, NamedTuple, Optional, Sequence


class Settings(NamedTuple):
    """The parameters of ``Server`` under their own names."""

    name: str
    version: str
    instructions: Optional[str]
    subscribe: bool
    list_changed: bool
    ttl_ms: Any
    cache_scope: str
    page_size: Optional[int]
    protocol_versions: Sequence[str]
    answer: str
    keep_alive: Optional[float]
    max_streams: Optional[int]
    chunked: bool
    backlog: int
    eras: Sequence[str]
    legacy_versions: Sequence[str]
    sessions: bool
    get_stream: bool
    resumable: bool
    retry_ms: Optional[int]
    capabilities: Sequence[str]
    check_capabilities: bool
    check_param_headers: bool
    directory_read: bool

    @property
    def supported(self) -> Sequence[str]:
        """Every protocol version that the server speaks, the newest first."""
        modern = self.protocol_versions if "modern" in self.eras else ()
        legacy = sorted(self.legacy_versions, reverse=True) if "legacy" in self.eras else ()
        return tuple(modern) + tuple(legacy)

    @property
    def stream_framing(self) -> str:
        """How event streams tell where they end."""
        return "chunked" if self.chunked else "close"
