"""The command ``demo``: how its story is printed."""

import argparse

from .exits import FAILED, OK
from .output import Output, clean

__all__ = ["demo"]


def demo(arguments: argparse.Namespace, output: Output) -> int:
    """``mcp-sync demo``."""
    # The server is of no use to the other commands, and takes time to import.
    from ..demo import Story

    good, bad = ("✓", "✗") if output.can_show("✓✗") else ("[ok]", "[NO]")
    story = Story()
    steps = happened = 0
    for step in story.play():
        steps += 1
        happened += step.ok
        if arguments.json:
            output.json_line(step.to_json())
            continue
        output.line("%d. %s" % (step.number, step.title))
        for check in step.checks:
            output.line("   %s %s" % (good if check.ok else bad, clean(check.told)))
        output.line("")
    if not arguments.json:
        counts = story.counts
        output.line(
            "%s %d of %d steps happened in %.1f s: %d reads, %d of them from memory; %d changes; %d reads at servers."
            % (
                good if happened == steps else bad,
                happened,
                steps,
                counts.seconds,
                counts.reads,
                counts.from_memory,
                counts.changes,
                counts.requests,
            )
        )
    return OK if happened == steps else FAILED
