"""Many threads read what others change, through a network that breaks, from a server that dies and comes back.

::

    cd tests; python -m stress.soak --minutes 30 --seed 7 [--server embedded|official] [--era modern|legacy]

Every read is judged (``judge.py``). What happens is chosen by the seed; when it happens, the machine has a say in as well.
"""

import argparse
import collections
import os
import random
import sys
import tempfile
import threading
from typing import Any, Callable, Counter, Dict, List, NamedTuple, Optional

from mcp_sync import AuthorizationError, Client, MCPSyncError, ResourceNotFound
from mcp_sync._deadline import monotonic

from .judge import Judge, Violation, text_of
from .proxy import Fault, Proxy, chooser, chosen
from .served import URIS, Embedded, Official, Served, uris_of

READERS, WRITERS = 16, 4
#: Only a failure reaches it, in seconds.
BOUND = 90.0
MAX_AGE, TIMEOUT = 3.0, 2.0

_MODES = ["use"] * 14 + ["stale_ok"] * 3 + ["refresh"] * 2 + ["bypass"]
_OPTIONS: Dict[str, Dict[str, Any]] = {
    "use": {},
    "stale_ok": {"stale_ok": True},
    "refresh": {"cache_mode": "refresh"},
    "bypass": {"cache_mode": "bypass"},
}


class Weight(NamedTuple):
    """What the process has of the system's: threads, open files, and memory in MiB (0 where that cannot be known)."""

    threads: int
    files: int
    memory: float

    @classmethod
    def now(cls) -> "Weight":
        """Weigh it."""
        try:
            files = len(os.listdir("/proc/self/fd"))
            with open("/proc/self/statm") as file:
                memory = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1048576.0
        except OSError:
            files, memory = 0, 0.0
        return cls(threading.active_count(), files, round(memory, 1))


class Report(NamedTuple):
    """What came of a soak."""

    seed: int
    reads: int
    verdicts: Dict[str, int]
    errors: Dict[str, int]
    versions: int
    faults: Dict[str, int]
    restarts: int
    status: str
    slowest: float
    before: Weight
    settled: Weight
    most: Weight
    after: Weight
    violations: List[str]

    def __str__(self) -> str:
        lines = ["seed %d: %d violations" % (self.seed, len(self.violations))]
        lines.append("%d reads: %s; the longest call took %.2f s" % (self.reads, _counts(self.verdicts), self.slowest))
        lines.append("errors: %s" % _counts(self.errors))
        lines.append("%d versions written; faults: %s; %d restarts" % (self.versions, _counts(self.faults), self.restarts))
        lines.append("the watch at its end: %s" % self.status)
        for when in ("before", "settled", "most", "after"):
            lines.append("%-8s %3d threads, %3d open files, %6.1f MiB" % ((when,) + getattr(self, when)))
        return "\n".join(lines + self.violations[:3])


def _counts(counts: Dict[str, int]) -> str:
    return ", ".join("%d %s" % (number, name) for name, number in sorted(counts.items())) or "none"


class Soak:
    """One soak. Made, run once, and gone.

    :param seed: what chance begins with.
    :param make: makes the server, given the judge.
    :param options: of the client, beside those that make it quick to notice what is wrong.
    """

    def __init__(self, seed: int, make: Callable[[Judge], Served], **options: Any) -> None:
        self._seed = seed
        # A copy that nothing is said of counts for MAX_AGE, a poll's for less; and a read that is joined can last a call.
        self.judge = Judge(URIS, max(MAX_AGE, TIMEOUT))
        self._served = make(self.judge)
        self._options = dict(
            timeout=TIMEOUT,
            connect_timeout=1.0,
            max_age=MAX_AGE,
            poll_interval=1.0,
            poll_after=1.0,
            ack_timeout=1.0,
            silence_timeout=1.0,
            throttle=0.02,
        )
        self._options.update(options)
        self._done = threading.Event()  # nobody reads any more, and nothing is broken any more
        self._written = threading.Event()  # nobody writes any more
        self._lock = threading.Lock()  # guards the three below
        self._errors: Counter[str] = collections.Counter()
        self._reads = 0
        self._slowest = 0.0

    def run(self, seconds: float) -> Report:
        """Run for so long, and as long as it takes to come to rest."""
        before = most = Weight.now()
        with Proxy(self._served.port) as proxy:
            url = self._served.url.replace(":%d/" % self._served.port, ":%d/" % proxy.port)
            client = Client(url, **self._options)
            self._listen_in(client)
            watch = client.watch(*URIS, on_change=self.judge.changed)
            try:
                watch.wait_until_current(timeout=BOUND)
                settled = Weight.now()
                threads = [self._thread(self._read, number, client) for number in range(READERS)]
                threads += [self._thread(self._write, number) for number in range(WRITERS)]
                most = self._break_things(proxy, seconds)
                for event, some in ((self._done, threads[:READERS]), (self._written, threads[READERS:])):
                    event.set()
                    for thread in some:
                        thread.join(BOUND)
                        if thread.is_alive():
                            self.judge.failed("%s does not come back" % thread.name)
                if not self.judge.violations:
                    self._come_to_rest(watch)
                status = str(watch.status)
            finally:
                self._done.set()
                self._written.set()
                client.close()
            faults = dict(proxy.bitten)
        self._served.check()
        self._served.stop()
        # close() does not wait for ever for threads that are on their way out.
        end = monotonic() + BOUND
        after = Weight.now()
        while (after.threads > before.threads or after.files > before.files) and monotonic() < end:
            threading.Event().wait(0.05)
            after = Weight.now()
        with self._lock:
            reads, errors, slowest = self._reads, dict(self._errors), self._slowest
        return Report(
            self._seed,
            reads,
            self.judge.verdicts,
            errors,
            sum(self.judge.last(uri) for uri in URIS),
            faults,
            self._served.restarts,
            status,
            slowest,
            before,
            settled,
            most,
            after,
            self.judge.violations,
        )

    def _chance(self, who: str) -> random.Random:
        return random.Random("%d, %s" % (self._seed, who))

    def _thread(self, work: Callable[..., None], number: int, *more: Any) -> threading.Thread:
        thread = threading.Thread(target=work, args=(number,) + more, name="soak%s-%d" % (work.__name__, number), daemon=True)
        thread.start()
        return thread

    def _listen_in(self, client: Client) -> None:
        """Learn of each notice, once the client has dealt with it."""
        upkeep: Any = client._upkeep
        deal_with = upkeep.noticed

        def noticed(notice: Any) -> None:
            deal_with(notice)
            self.judge.noticed(notice)

        upkeep.noticed = noticed

    # -- threads ---------------------------------------------------------------------------------------------------------

    def _read(self, number: int, client: Client) -> None:
        chance = self._chance("reader %d" % number)
        while not self._done.is_set() and not self.judge.violations:
            uri = chance.choice(URIS)
            for _ in range(chance.randrange(1, 12)):
                try:
                    self._read_once(number, client, uri, chance.choice(_MODES))
                except Violation:
                    return
            self._done.wait(chance.uniform(0.0, 0.03))

    def _read_once(self, number: int, client: Client, uri: str, mode: str) -> None:
        call = self.judge.begins(number, uri, mode)
        error: Optional[str] = None
        try:
            result = client.read_resource(uri, **_OPTIONS[mode])
        except (ResourceNotFound, AuthorizationError) as wrong:
            return self.judge.failed("what was always there for everybody was refused: %r, %s" % (wrong, call))
        except MCPSyncError as expected:
            error = type(expected).__name__
        except BaseException as foreign:
            return self.judge.failed("an error that is not of the package: %r, %s" % (foreign, call))
        with self._lock:
            self._reads += 1
            self._slowest = max(self._slowest, monotonic() - call.begun)
            if error is not None:
                self._errors[error] += 1
        if error is None:
            self.judge.ends(call, result)

    def _write(self, number: int) -> None:
        chance = self._chance("writer %d" % number)
        uris = uris_of(number, WRITERS)
        # Each text is written once more at the end, to a server that is there, so that all of them are known.
        while not self._written.wait(0.2 * chance.random() ** 2):
            self._served.write(chance.choice(uris), chance)
        for uri in uris:
            end = monotonic() + BOUND
            while not self._served.write(uri, chance) and monotonic() < end:
                threading.Event().wait(0.05)

    def _break_things(self, proxy: Proxy, seconds: float) -> Weight:
        chance = self._chance("faults")
        proxy.choose = chooser(self._chance("connections"), 0.4)
        most = Weight.now()
        end = monotonic() + seconds
        restart_at = monotonic() + chance.uniform(0.5, 1.0) * self._served.restart_every
        while monotonic() < end and not self.judge.violations:
            self._done.wait(chance.uniform(0.02, 0.25))
            if monotonic() >= restart_at:
                self._served.kill()
                self._done.wait(chance.uniform(0.0, 0.5))
                self._served.start()
                restart_at = monotonic() + chance.uniform(0.5, 1.5) * self._served.restart_every
            elif chance.random() < 0.1:
                self._served.disturb(chance)
            else:
                proxy.disturb(chosen(chance), chance)
            most = Weight(*(max(pair) for pair in zip(most, Weight.now())))
        proxy.heal()
        return most

    def _come_to_rest(self, watch: Any) -> None:
        """All is well again: the watch has to come to what there is at last, without being asked."""
        end = monotonic() + BOUND
        for uri in URIS:
            wanted = text_of(uri, self.judge.last(uri))
            while monotonic() < end:
                held = watch.held(uri)
                if held.current and held.result is not None and held.result.text == wanted:
                    break
                threading.Event().wait(0.02)
            else:
                self.judge.failed("%s was never seen as it was at last: %s; %s" % (uri, held, watch.status))


def main(arguments: List[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m stress.soak", description="A soak: every read is judged.")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--server", choices=("embedded", "official"), default="embedded")
    parser.add_argument("--era", choices=("modern", "legacy"), default="modern", help="of the embedded server")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        if options.server == "official":
            soak = Soak(options.seed, lambda judge: Official(judge, directory))
        else:
            soak = Soak(options.seed, lambda judge: Embedded(judge, eras=(options.era,)))
        report = soak.run(options.minutes * 60.0)
    print(report)
    return 1 if report.violations else 0


__all__ = ["Fault", "Report", "Soak", "Weight", "main"]

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
