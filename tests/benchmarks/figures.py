"""Figures, as ratios in one run: ``python tests/benchmarks/figures.py``.

A benchmark, never a test: nothing is asserted. Each figure is taken together with its rivals', in turns, and the medians are
compared, since the machine is as fast as it happens to be at the moment. The rivals that others wrote run in environments of
their own, which are made at the first run (see ``tests/interop/environments.py``). ``--write`` puts the table into
``RESULTS.rst`` and the README.
"""

import argparse
import contextlib
import http.client
import json
import os
import platform
import queue
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

import requests
import sseclient

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, ROOT)

from rivals import URI, plain_request  # noqa: E402

from mcp_sync import Client  # noqa: E402

# The server for tests, in a process of its own: on each line it sends a storm.
STORM = r"""
import sys
from mcp_sync.testing import Server
server = Server().start()
for number in range(100):
    server.add("docs://figures/%d" % number, "before")
print(server.url, flush=True)
for line in sys.stdin:
    server.forget_requests()
    for number in range(100):
        server.update("docs://figures/%d" % number, "during " + line.strip(), notify=False)
    for turn in range(100):
        for number in range(100):
            server.notify_updated("docs://figures/%d" % number, times=10)
    server.update("docs://figures/0", "after " + line.strip())
    sys.stdin.readline()
    print(server.count("resources/read"), flush=True)
"""

OURS, OFFICIAL, CACHED, FASTMCP, PER_CALL = "mcp_sync", "official", "official, cache", "fastmcp", "asyncio.run"

#: What the rivals are called in the table.
NAMES = {
    "requests": "plain ``requests``",
    "http.client": "plain ``http.client``",
    "dictionary": "dictionary and lock",
    "three": "the three dependencies",
    OFFICIAL: "official SDK, portal",
    CACHED: "official SDK, portal, cache",
    FASTMCP: "fastmcp, portal",
    PER_CALL: "official SDK, ``asyncio.run`` per call",
}

#: The Python of each rival that is not here.
PYTHONS: Dict[str, str] = {}


class Row(NamedTuple):
    """One line of the table."""

    work: str
    ours: str
    rival: str
    theirs: str
    ratio: str
    target: str


ROWS: List[Row] = []


def holds(target: str, ratio: float) -> bool:
    """Return whether a ratio is within a target: "≤ 1.2", "≥ 2"."""
    which, limit = target.split()
    return ratio <= float(limit) if which == "≤" else ratio >= float(limit)


def show(
    work: str, ours: str, rival: str, theirs: str, ratio: float, target: str = "", held: Optional[bool] = None
) -> None:
    """Show one line.

    :param target: for the ratio, or for our own figure.
    :param held: whether it was met, if it is for our own figure.
    """
    if target and not (holds(target, ratio) if held is None else held):
        target += ", missed"
    row = Row(work, ours, NAMES.get(rival, rival), theirs, "%.2f" % ratio if ratio < 100 else "%.0f" % ratio, target)
    ROWS.append(row)
    print("%-42s %14s   %-38s %14s   %7s  %s" % row, flush=True)


def compare(
    work: str,
    figures: Dict[str, float],
    form: Callable[[float], str],
    targets: Dict[str, str],
    limit: Optional[float] = None,
) -> None:
    """Show our figure against each rival's. Below 1 is better, or above 1 where more is better.

    :param limit: the most that our own figure may be, if it is that what the targets are for.
    """
    ours = figures[OURS]
    held = None if limit is None else ours <= limit
    for rival, theirs in figures.items():
        if rival != OURS:
            show(work, form(ours), rival, form(theirs), ours / theirs, targets.get(rival, ""), held)


def milliseconds(value: float) -> str:
    return "%.*f ms" % (0 if value >= 0.05 else 2, value * 1e3)


def a_second(value: float) -> str:
    return "{:,.0f}/s".format(value)


def kib(value: float) -> str:
    return "%.1f MiB" % (value / 1024) if value >= 10240 else "%.*f KiB" % (0 if value >= 100 else 2, value)


class Process:
    """A program in a process of its own. Its first line says that it is there."""

    def __init__(self, *arguments: str, python: str = sys.executable) -> None:
        self.process = subprocess.Popen(
            [python] + list(arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            universal_newlines=True,
            env=environment(python),
        )
        self.first = self.line()

    def line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("%s ended" % (self.process.args,))
        return line.strip()

    def tell(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def ask(self, text: str) -> str:
        self.tell(text)
        return self.line()

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_: Any) -> None:
        self.process.kill()
        self.process.communicate()


class Canned(Process):
    """See ``canned.py``."""

    def __init__(self) -> None:
        super().__init__(os.path.join(HERE, "canned.py"))
        self.url = "http://127.0.0.1:%s/mcp" % self.first


class Rival(Process):
    """See ``rivals.py``."""

    def __init__(self, kind: str, url: str) -> None:
        super().__init__(os.path.join(HERE, "rivals.py"), kind, url, python=PYTHONS.get(kind, sys.executable))

    def do(self, *command: Any) -> Any:
        return json.loads(self.ask(json.dumps(command)))


class Rivals(Dict[str, Rival]):
    """Several rivals at once, on one server."""

    def __init__(self, kinds: Sequence[str], url: str) -> None:
        super().__init__((kind, Rival(kind, url)) for kind in present(kinds))

    def __enter__(self) -> "Rivals":
        return self

    def __exit__(self, *_: Any) -> None:
        for rival in self.values():
            rival.__exit__()


CODE = tempfile.TemporaryDirectory()


def environment(python: str) -> Dict[str, str]:
    """Return a child's variables. Everybody's code is compiled once, and then only loaded, as that of an installed package is."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    variables["PYTHONPYCACHEPREFIX"] = CODE.name
    if python == sys.executable:
        variables["PYTHONPATH"] = ROOT
    return variables


def present(kinds: Sequence[str]) -> List[str]:
    """Return those of the rivals that there are environments for."""
    return [kind for kind in kinds if kind not in (OFFICIAL, CACHED, FASTMCP, PER_CALL) or kind in PYTHONS]


def in_turns(works: Dict[str, Callable[[], float]], rounds: int) -> Dict[str, float]:
    """Return the median of each of several measurements, taken in turns."""
    taken: Dict[str, List[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            taken[name].append(work())
    return {name: statistics.median(figures) for name, figures in taken.items()}


def plain_post(session: requests.Session, url: str, method: str, params: Dict[str, Any], **options: Any) -> requests.Response:
    body, headers = plain_request(method, params)
    return session.post(url, data=body, headers=headers, **options)


def child(python: str, *arguments: str) -> float:
    """Return the seconds that a program takes from its start to its end."""
    began = time.perf_counter()
    subprocess.run([python] + list(arguments), check=True, env=environment(python))
    return time.perf_counter() - began


def imports(rounds: int) -> None:
    codes = {OURS: "import mcp_sync", "three": "import requests, sseclient, cachetools"}
    codes.update({OFFICIAL: "from mcp import Client", FASTMCP: "from fastmcp import Client"})
    codes = {kind: codes[kind] for kind in present(list(codes))}
    works: Dict[str, Callable[[], float]] = {"nothing": lambda: child(sys.executable, "-c", "pass")}
    for kind, code in codes.items():
        works[kind] = lambda kind=kind, code=code: child(PYTHONS.get(kind, sys.executable), "-c", code)  # type: ignore
    in_turns(works, 1)  # compiles
    far = in_turns({kind: work for kind, work in works.items() if kind != "three"}, 2 * rounds)
    # These two are near each other, so they are taken more often.
    near = in_turns({kind: works[kind] for kind in ("nothing", OURS, "three")}, 4 * rounds)
    for taken in (near, far):
        nothing = taken.pop("nothing")
        only = {kind: figure - nothing for kind, figure in taken.items()}
        compare("import", only, milliseconds, {"three": "≤ 1.2", OFFICIAL: "≤ 0.2"})

    def memory(kind: str) -> float:
        python = PYTHONS.get(kind, sys.executable)
        code = codes[kind] + "; print(int(open('/proc/self/statm').read().split()[1]) * 4)"
        return float(subprocess.run([python, "-c", code], check=True, stdout=subprocess.PIPE, env=environment(python)).stdout)

    taken = in_turns({kind: (lambda kind=kind: memory(kind)) for kind in codes}, rounds)  # type: ignore
    compare("memory after import", taken, kib, {"three": "≤ 1.15"})


def cold(rounds: int) -> None:
    program = os.path.join(HERE, "rivals.py")
    with Canned() as server:
        works: Dict[str, Callable[[], float]] = {}
        for kind in present([OURS, "requests", "http.client", OFFICIAL, PER_CALL, FASTMCP]):
            python = PYTHONS.get(kind, sys.executable)
            works[kind] = lambda kind=kind, python=python: child(python, program, kind, server.url, "once")  # type: ignore
        in_turns(works, 1)
        taken = in_turns(works, 2 * rounds)
        # These two are near each other, so they are taken more often.
        near = in_turns({kind: works[kind] for kind in (OURS, "requests")}, 6 * rounds)
    work = "cold script that reads one resource"
    compare(work, near, milliseconds, {"requests": "≤ 1.15"})
    del taken["requests"]
    compare(work, taken, milliseconds, {OFFICIAL: "≤ 0.2"})


def uncached(rounds: int) -> None:
    kinds = [OURS, "requests", "http.client", OFFICIAL, PER_CALL, FASTMCP]
    with Canned() as server, Rivals(kinds, server.url) as rivals:
        for threads, targets in (
            (1, {"requests": "≤ 0.65", OFFICIAL: "≤ 0.35"}),
            (8, {"requests": "≥ 1.4", OFFICIAL: "≥ 2"}),
            (32, {"requests": "≥ 1.4", OFFICIAL: "≥ 2"}),
        ):
            times = {kind: max(8, threads) if kind == PER_CALL else 640 for kind in rivals}
            works = {
                kind: (lambda kind=kind, rival=rival: float(rival.do("rate", threads, times[kind])))  # type: ignore
                for kind, rival in rivals.items()
            }
            in_turns(works, 1)
            taken = in_turns(works, rounds)
            if threads == 1:
                taken = {kind: 1.0 / figure for kind, figure in taken.items()}
                compare("uncached read, 1 thread", taken, lambda value: "%.0f µs" % (value * 1e6), targets)
            else:
                compare("uncached reads, %d threads" % threads, taken, a_second, targets)


def cached(rounds: int) -> None:
    with Canned() as server:
        server.ask("ttl 3600000")
        with Rivals([OURS, "dictionary", CACHED], server.url) as rivals:
            for kind, rival in rivals.items():
                if kind != "dictionary":
                    rival.do("hits")
            for threads in (1, 8, 32):
                # Long enough for the threads to be in each other's way: Python lets each run for some milliseconds.
                times = {kind: 3200 if kind == CACHED else 640000 for kind in rivals}
                works = {
                    kind: (lambda kind=kind, rival=rival: float(rival.do("rate", threads, times[kind])))  # type: ignore
                    for kind, rival in rivals.items()
                }
                in_turns(works, 1)
                taken = in_turns(works, rounds)
                if threads == 1:
                    taken = {kind: 1.0 / figure for kind, figure in taken.items()}
                    compare(
                        "cached read, 1 thread",
                        taken,
                        lambda value: "{:,.0f} ns".format(value * 1e9),
                        {"dictionary": "≤ 3", CACHED: "≤ 0.005"},
                    )
                else:
                    compare("cached reads, %d threads" % threads, taken, a_second, {"dictionary": "≥ 1"})


def notice(rounds: int) -> None:
    kinds = present([OURS, "requests", "http.client", OFFICIAL])
    taken: Dict[str, List[float]] = {kind: [] for kind in kinds}
    with contextlib.ExitStack() as running:
        # Each with a server of its own, so that they do not wait for each other.
        servers = {kind: running.enter_context(Canned()) for kind in kinds}
        rivals = {kind: running.enter_context(Rival(kind, server.url)) for kind, server in servers.items()}
        for rival in rivals.values():
            rival.do("follow")
        for number in range(4 * rounds):
            # Apart, as most changes are: what changes without pause is read again less often (``throttle=``, up to eight times).
            time.sleep(2.0)
            for kind, rival in rivals.items():
                time.sleep(0.1)
                text = "change %d" % number
                rival.tell(json.dumps(["wait", text]))
                published = float(servers[kind].ask("update " + text))
                taken[kind].append(json.loads(rival.line()) - published)
    medians = {kind: statistics.median(figures[1:]) for kind, figures in taken.items()}
    compare("notice to fresh", medians, milliseconds, {"requests": "≤ 1.2", OFFICIAL: "≤ 0.7"})


def baseline(rounds: int) -> None:
    count, delay, threads = 1000, 0.02, 4
    with Canned() as server, Rival(OURS, server.url) as rival:
        rival.do("watch", count, False)
        server.ask("delay %g" % delay)
        taken = []
        for _ in range(max(1, rounds // 2)):
            server.ask("drop")
            taken.append(float(server.ask("since-stream %d" % count)))
    ideal = count * delay / threads
    took = statistics.median(taken)
    what = "ideal with 4 threads"
    show("baseline of 1,000 URIs at 20 ms a read", "%.2f s" % took, what, "%.2f s" % ideal, took / ideal, "≤ 1.2")


def idle(rounds: int) -> None:
    count, text = 10000, 100 / 1024.0
    for what, trace, target in (("allocated", True, "≤ 1.5 KiB"), ("resident", False, "")):
        each: List[float] = []
        for _ in range(min(3, rounds)):
            with Canned() as server, Rival(OURS, server.url) as rival:
                rival.do("watch", count, trace)
                time.sleep(2.0)  # the threads that read have nothing to do any more
                streams, threads = int(server.ask("streams")), rival.do("threads")
                each.append(rival.do("weight", count))
        beside = statistics.median(each) - text
        work = "idle watch of 10,000 URIs: %s for each" % what
        show(work, kib(beside), "text of each", kib(text), beside / text, target, beside <= 1.5)
    held = (threads, streams) == (2, 1)
    work = "idle watch of 10,000 URIs: threads"
    show(work, str(threads), "streams", str(streams), threads / streams, "2 threads, 1 stream", held)


def clients(rounds: int) -> None:
    with Canned() as server:

        def one(kind: str) -> float:
            with Rival(kind, server.url) as rival:
                rival.do("more", 10)
                size, threads[kind] = rival.do("more", 40)
                return float(size)

        threads: Dict[str, float] = {}
        kinds = present([OURS, "requests", OFFICIAL, FASTMCP])
        taken = in_turns({kind: (lambda kind=kind: one(kind)) for kind in kinds}, min(3, rounds))  # type: ignore
    compare("memory of one more client", taken, kib, {})
    for kind in kinds[1:]:
        show("threads of one more client", "%g" % threads[OURS], kind, "%g" % threads[kind], threads[OURS] - threads[kind])


class PlainProgram:
    """What one would write with requests alone: listen, merge duplicates, read again. It shows what is possible."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.session = requests.Session()
        self.texts: Dict[str, str] = {}
        self.due: "queue.Queue[Optional[str]]" = queue.Queue()
        self.waiting: Dict[str, None] = {}
        self.lock = threading.Lock()
        self.changed = threading.Condition()
        uris = ["docs://figures/%d" % number for number in range(100)]
        self.stream = plain_post(
            requests.Session(),
            url,
            "subscriptions/listen",
            {"notifications": {"resourceSubscriptions": uris}},
            stream=True,
            timeout=60,
        )
        self.threads = [
            threading.Thread(target=work, name="plain-%s" % work.__name__, daemon=True) for work in (self.listen, self.read)
        ]
        for thread in self.threads:
            thread.start()

    def listen(self) -> None:
        raw = self.stream.raw

        def chunks() -> Any:
            while True:
                chunk = raw._fp.read1(65536)
                if not chunk:
                    return
                yield chunk

        def events() -> Any:
            try:
                yield from sseclient.SSEClient(chunks()).events()
            except http.client.HTTPException:
                pass  # the measurement is over

        for event in events():
            message = json.loads(event.data)
            if message.get("method") == "notifications/resources/updated":
                uri = message["params"]["uri"]
                with self.lock:
                    if uri not in self.waiting:
                        self.waiting[uri] = None
                        self.due.put(uri)

    def read(self) -> None:
        while True:
            uri = self.due.get()
            if uri is None:
                return
            time.sleep(0.005)  # a moment for duplicates to come
            with self.lock:
                self.waiting.pop(uri, None)
            result = json.loads(plain_post(self.session, self.url, "resources/read", {"uri": uri}).content)
            with self.changed:
                self.texts[uri] = result["result"]["contents"][0]["text"]
                self.changed.notify_all()


def resident() -> float:
    """Return the memory of this process in KiB."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024.0


def processor_time(thread: str) -> float:
    """Return the seconds that a thread of this process has computed, by the beginning of its name."""
    [ident] = [other.ident for other in threading.enumerate() if other.name.startswith(thread)]
    assert ident is not None
    return time.clock_gettime(time.pthread_getcpuclockid(ident))


class OtherCaller:
    """A thread that goes on reading, from memory and from a quiet server, and how long that takes. A context manager."""

    def __init__(self, url: str) -> None:
        self.client = Client(url)
        self.taken: List[float] = []
        self.ending = False
        self.thread = threading.Thread(target=self.run)

    def run(self) -> None:
        while not self.ending:
            self.client.read_resource(URI)
            began = time.perf_counter()
            self.client.read_resource(URI, cache_mode="bypass")
            self.taken.append(time.perf_counter() - began)

    def median(self) -> float:
        """Return the median of what was taken since this was last asked."""
        taken, self.taken = self.taken, []
        return statistics.median(taken)

    def __enter__(self) -> "OtherCaller":
        self.thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.ending = True
        self.thread.join()
        self.client.close()


def storm(rounds: int) -> None:
    what = "plain ``requests`` program"
    with Process("-c", STORM) as server, Canned() as quiet:
        quiet.ask("ttl 3600000")
        reads: Dict[str, List[float]] = {OURS: [], what: []}
        grown: Dict[str, List[float]] = {OURS: [], what: []}
        heard: Dict[str, List[float]] = {OURS: [], what: []}
        calm: Dict[str, List[float]] = {OURS: [], what: []}
        number = [0]

        def send() -> str:
            number[0] += 1
            server.tell(str(number[0]))
            return "after %d" % number[0]

        def play(who: str, settled: Callable[[str], None], thread: str) -> float:
            before, computed = resident(), processor_time(thread)
            began = time.perf_counter()
            settled(send())
            took = time.perf_counter() - began
            heard[who].append((processor_time(thread) - computed) / 100001)
            grown[who].append(resident() - before)
            server.tell("count")
            reads[who].append(float(server.line()) / 100.0)
            return took

        def beside(who: str, settled: Callable[[str], None], thread: str) -> float:
            with OtherCaller(quiet.url) as other:
                time.sleep(0.5)
                other.median()
                time.sleep(0.5)
                calm[who].append(other.median())
                text, computed = send(), -1.0
                # Only while notices come: the reads after them are few.
                while processor_time(thread) - computed > 0.001:
                    computed = processor_time(thread)
                    time.sleep(0.05)
                during = other.median()
                settled(text)
            server.tell("count")
            server.line()
            return during

        Play = Callable[[str, Callable[[str], None], str], float]

        def ours(play: Play) -> float:
            with Client(server.first) as client:
                with client.watch(*["docs://figures/%d" % number for number in range(100)]) as watch:
                    watch.wait_until_current(timeout=60)

                    def settled(text: str) -> None:
                        for change in watch.changes(timeout=60):
                            if change.uri == URI and getattr(change.current, "text", None) == text:
                                break
                        watch.wait_until_current(timeout=60)

                    return play(OURS, settled, "mcp_sync-reader")

        def plain(play: Play) -> float:
            program = PlainProgram(server.first)

            def settled(text: str) -> None:
                with program.changed:
                    program.changed.wait_for(lambda: program.texts.get(URI) == text and not program.waiting, 60)

            try:
                return play(what, settled, "plain-listen")
            finally:
                program.stream.raw._fp.fp.raw._sock.shutdown(2)
                program.due.put(None)
                for thread in program.threads:
                    thread.join()

        rounds = max(2, rounds)
        taken = in_turns({OURS: lambda: ours(play), what: lambda: plain(play)}, rounds)
        compare("storm of 100,000 notices, 100 URIs", taken, lambda value: "%.2f s" % value, {what: "≤ 1.2"})

        def medians(taken: Dict[str, List[float]]) -> Dict[str, float]:
            return {who: statistics.median(figures) for who, figures in taken.items()}

        compare("the same: reads of each URI", medians(reads), lambda value: "%.2f" % value, {what: "≤ 5 reads"}, 5.0)
        compare("the same: to hear one notice, computing", medians(heard), lambda value: "%.1f µs" % (value * 1e6), {})
        most = {who: max(1.0, max(figures)) for who, figures in grown.items()}
        compare("the same: memory gained, at most", most, kib, {what: "≤ 5 MiB"}, 5120.0)
        during = in_turns({OURS: lambda: ours(beside), what: lambda: plain(beside)}, rounds)
        for who, median in medians(calm).items():
            show(
                "others' uncached reads during a storm (%s)" % ("ours" if who == OURS else "plain"),
                "%.2f ms" % (during[who] * 1e3),
                "the same, when all is quiet",
                "%.2f ms" % (median * 1e3),
                during[who] / median,
                "≤ 2" if who == OURS else "",
            )


FIGURES: Dict[str, Callable[[int], None]] = {
    "import": imports,
    "cold": cold,
    "uncached": uncached,
    "cached": cached,
    "notice": notice,
    "storm": storm,
    "baseline": baseline,
    "idle": idle,
    "clients": clients,
}

INTRODUCTION = """\
Figures
=======

Made by ``%s`` on %s, %d cores, Python %s, with a load of %s at the end.

Each figure is a median, taken in turns with its rivals' in one run: the ratios tell something, the figures themselves are this
machine's. The ratio is ``mcp_sync``'s figure by the rival's; where the target is "≤", less is better, where it is "≥", more is.
The server is a canned one that costs next to nothing, so that the clients' cost shows. "Portal" is a client for event loops on a
loop that runs in a thread, behind ``anyio``'s ``BlockingPortal``.

"""


def table(rows: Sequence[Row]) -> str:
    """Return the table in reStructuredText."""
    lines = [Row("work", "mcp_sync", "rival", "its figure", "ratio", "target")] + list(rows)
    widths = [max(len(line[column]) for line in lines) for column in range(len(Row._fields))]
    rule = "  ".join("=" * width for width in widths)
    written = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]
    return "\n".join([rule, written[0], rule] + written[1:] + [rule]) + "\n"


def write(command: str) -> None:
    # Others' work on the machine disturbs small figures most, so it is told.
    load = "%.1f" % os.getloadavg()[0] if hasattr(os, "getloadavg") else "unknown"
    about = (command, platform.system(), os.cpu_count() or 0, platform.python_version(), load)
    with open(os.path.join(HERE, "RESULTS.rst"), "w", encoding="utf-8") as file:
        file.write(INTRODUCTION % about + table(ROWS))
    into_readme(table(ROWS))


def into_readme(rows: str) -> None:
    """Put the table into the README, in the place of the one that is there."""
    path = os.path.join(ROOT, "README.rst")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    table_there = r"(?m)^=[= ]+\nwork +mcp_sync +rival .*\n=[= ]+\n(?:.+\n)+?=[= ]+\n"
    with open(path, "w", encoding="utf-8") as file:
        file.write(re.sub(table_there, lambda found: rows, text, count=1))


def find_others() -> None:
    """Make the environments of the rivals that others wrote."""
    from tests.interop.environments import python_environment
    from tests.interop.real_server import FASTMCP as FASTMCP_PACKAGES
    from tests.interop.real_server import OFFICIAL_PYTHON

    official = str(python_environment(*OFFICIAL_PYTHON))
    PYTHONS.update({OFFICIAL: official, CACHED: official, PER_CALL: official})
    PYTHONS[FASTMCP] = str(python_environment(*FASTMCP_PACKAGES))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", nargs="*", choices=list(FIGURES) + [[]], help="which ones; all by default")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is taken (5)")
    parser.add_argument("--alone", action="store_true", help="without the rivals that others wrote")
    parser.add_argument("--write", action="store_true", help="write RESULTS.rst, and the README's table")
    arguments = parser.parse_args()
    if not arguments.alone:
        find_others()
    for name in arguments.figures or FIGURES:
        FIGURES[name](arguments.rounds)
    if arguments.write:
        write("python tests/benchmarks/figures.py " + " ".join(sys.argv[1:]))


if __name__ == "__main__":
    main()
