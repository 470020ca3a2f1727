"""The same readings, driven by atheris: a fuzzer that sees which lines each input covers. It ends at a crash, a hang or a leak.

::

    cd tests; python -m stress.fuzz events -max_total_time=600        # or messages, results

What follows the first word goes to libFuzzer: ``-max_total_time`` in seconds; a file, to run that one input again.
"""

import json
import os
import pathlib
import sys
import tempfile
from typing import Any, Callable, Dict, List

import atheris

with atheris.instrument_imports(include=["mcp_sync"]):
    from stress.reading import RESULTS, by_the_standard, corpus, outline, read_message, read_result


def events(data: bytes) -> None:
    """The first byte says how the others are cut."""
    cut, stream = (data[0], data[1:]) if data else (0, b"")
    size = cut % 17 + 1
    whole = outline([stream])
    assert outline(stream[at : at + size] for at in range(0, len(stream), size)) == whole
    assert outline([stream[:cut], stream[cut:]]) == whole
    assert [None if isinstance(item, str) else item for item in whole[0]] == by_the_standard(stream)
    for item in whole[0]:
        if not isinstance(item, str):
            read_message(item.data)


def messages(data: bytes) -> None:
    read_message(data)
    read_message(data.decode("utf-8", "surrogateescape"))


def results(data: bytes) -> None:
    """The first byte says what kind of result the others are."""
    kinds = sorted(RESULTS)
    try:
        value: Any = json.loads(data[1:].decode("utf-8"))
    except (ValueError, RecursionError):
        return
    # As a result comes: no deeper than a message may be.
    if data.count(b"[") + data.count(b"{") < 200:
        read_result(kinds[data[0] % len(kinds)], value)


TARGETS: Dict[str, Callable[[bytes], None]] = {"events": events, "messages": messages, "results": results}


def _seeds(target: str) -> Dict[str, bytes]:
    if target == "messages":
        return dict(corpus(target))
    if target == "events":
        return {name: b"\x03" + data for name, data in corpus(target)}
    return {name: bytes([sorted(RESULTS).index(name.split(".")[0])]) + data for name, data in corpus(target)}


def main(arguments: List[str]) -> None:
    if not arguments or arguments[0] not in TARGETS:
        raise SystemExit("usage: python -m stress.fuzz {%s} [options of libFuzzer]" % ",".join(TARGETS))
    target, options = arguments[0], arguments[1:]
    directory = pathlib.Path(tempfile.mkdtemp(prefix="fuzz-%s-" % target))
    for name, data in _seeds(target).items():
        (directory / name).write_bytes(data)
    bounds = ["-timeout=10", "-rss_limit_mb=1024", "-max_len=4096", "-artifact_prefix=%s/" % directory]
    again = any(os.path.isfile(option) for option in options)
    atheris.Setup([sys.argv[0]] + bounds + options + ([] if again else [str(directory)]), TARGETS[target])
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
