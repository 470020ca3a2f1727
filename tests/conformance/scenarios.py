"""What of the conformance suite is run, at which revisions, and how much of it has to succeed."""
from collections import namedtuple

LEGACY = ("2025-06-18", "2025-11-25")
MODERN = "2026-07-28"

#: name: as the suite has it; version: the revision that the suite is told; extension: whether the suite has it beside the
#: revisions; successes: how many checks have to succeed, which is all that can be reached. A client that did nothing, or only
#: half of it, would leave some out, and the suite does not count what is left out.
Scenario = namedtuple("Scenario", "name version extension successes")


def _at(name, versions, successes):
    return [Scenario(name, version, False, successes) for version in versions]


def _extension(name):
    return [Scenario(name, MODERN, True, 1)]


SCENARIOS = (
    _at("initialize", LEGACY, 1)
    + _at("tools_call", LEGACY + (MODERN,), 2)
    + _at("elicitation-sep1034-client-defaults", ["2025-11-25"], 5)
    + _at("sse-retry", ["2025-11-25"], 3)
    + _at("json-schema-2020-12-preservation", ["2025-11-25", MODERN], 9)
    + _at("json-schema-ref-no-deref", [MODERN], 1)
    + _at("request-metadata", [MODERN], 8)
    + _at("http-standard-headers", [MODERN], 9)
    + _at("http-custom-headers", [MODERN], 18)
    + _at("http-invalid-tool-headers", [MODERN], 12)
    + _at("sep-2322-client-request-state", [MODERN], 5)
    + _extension("sep-2640-client-no-prefetch")
    + _extension("sep-2640-client-verify-digest")
    + _extension("sep-2640-client-verify-size")
    + _extension("sep-2640-client-verify-frontmatter")
)


def not_run_yet(name):
    """:returns: why a scenario of the suite is not among ``SCENARIOS``, or None if there is no reason."""
    return "needs OAuth" if name.startswith("auth/") else None
