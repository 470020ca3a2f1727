"""How much of what hypothesis makes is tried: always the same in the short form, and more, by chance, on request."""

import os

from hypothesis import HealthCheck, settings

_EXAMPLES = os.environ.get("MCP_SYNC_EXAMPLES")

settings.register_profile(
    "short", max_examples=100, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
)
settings.register_profile(
    "long", max_examples=int(_EXAMPLES or 1), print_blob=True, database=None, deadline=None,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("long" if _EXAMPLES else "short")
