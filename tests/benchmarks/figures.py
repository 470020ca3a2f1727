"""Figures, as ratios in one run: ``python tests/benchmarks/figures.py``.

A benchmark, never a test: nothing is asserted. Each figure is taken together with its rival's, in turns, and the medians are
compared, since the machine is as fast as it happens to be at the moment.
"""

import argparse
import http.client
import json
import os
import queue
import statistics
import subprocess
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Sequence, Tuple

import requests
import sseclient

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, ROOT)

from mcp_sync import Client  # noqa: E402

URI = "docs://figures/0"
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "figures", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}

# A server that costs next to nothing, in a process of its own, so that the client's cost shows.
CANNED = r"""
import re, socket, threading
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", 0))
listener.listen(200)
print(listener.getsockname()[1], flush=True)

def serve(connection):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    data = b""
    while True:
        while b"\r\n\r\n" not in data:
            more = connection.recv(65536)
            if not more:
                return
            data += more
        head, _, data = data.partition(b"\r\n\r\n")
        length = int(re.search(rb"(?i)content-length: *(\d+)", head).group(1))
        while len(data) < length:
            data += connection.recv(65536)
        number = re.search(rb'"id": ?(\d+)', data[:length]).group(1)
        data = data[length:]
        body = (b'{"jsonrpc":"2.0","id":' + number + b',"result":{"resultType":"complete","contents":[{"uri":"docs://figures/0",'
                b'"mimeType":"text/plain","text":"' + b"x" * 100 + b'"}],"ttlMs":0,"cacheScope":"private"}}')
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""

# The embedded server, likewise in a process of its own: on each line it sends a storm.
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


class Process:
    """A server in a process of its own. Its first line says where it is."""

    def __init__(self, program: str) -> None:
        environment = dict(os.environ, PYTHONPATH=ROOT)
        self.process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            universal_newlines=True,
            env=environment,
        )
        self.first = self.line()

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def tell(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_: Any) -> None:
        self.process.kill()
        self.process.communicate()


def seconds(work: Callable[[], Any], times: int) -> float:
    began = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - began) / times


def in_turns(works: Sequence[Callable[[], float]], rounds: int) -> List[float]:
    """Return the median of each of several measurements, taken in turns."""
    taken: List[List[float]] = [[] for _ in works]
    for _ in range(rounds):
        for figures, work in zip(taken, works):
            figures.append(work())
    return [statistics.median(figures) for figures in taken]


def show(what: str, ours: str, rival: str, ratio: float, target: str) -> None:
    print("%-44s %16s  %-36s ratio %6.2f   target %s" % (what, ours, rival, ratio, target), flush=True)


def plain_post(session: requests.Session, url: str, method: str, params: Dict[str, Any], **options: Any) -> requests.Response:
    headers = {
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": method,
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
    }
    if "uri" in params:
        headers["Mcp-Name"] = params["uri"]
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}})
    return session.post(url, data=body, headers=headers, **options)


def imports(rounds: int) -> None:
    def child(code: str) -> Callable[[], float]:
        return lambda: seconds(
            lambda: subprocess.run([sys.executable, "-c", code], check=True, env=dict(os.environ, PYTHONPATH=ROOT)), 1
        )

    nothing, parts, ours = in_turns(
        [child("pass"), child("import requests, sseclient, cachetools"), child("import mcp_sync")], rounds
    )
    ours, parts = ours - nothing, parts - nothing
    show("import", "%.0f ms" % (ours * 1e3), "the three dependencies %.0f ms" % (parts * 1e3), ours / parts, "<= 1.2")

    def memory(code: str) -> Callable[[], float]:
        tell = code + "; import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        return lambda: float(
            subprocess.run(
                [sys.executable, "-c", tell], check=True, stdout=subprocess.PIPE, env=dict(os.environ, PYTHONPATH=ROOT)
            ).stdout
        )

    parts, ours = in_turns([memory("import requests, sseclient, cachetools"), memory("import mcp_sync")], 3)
    rival = "the three dependencies %.1f MiB" % (parts / 1024)
    show("memory after import", "%.1f MiB" % (ours / 1024), rival, ours / parts, "<= 1.15")


def uncached(rounds: int) -> None:
    with Process(CANNED) as server, requests.Session() as session:
        url = "http://127.0.0.1:%s/mcp" % server.first
        session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=32))
        with Client(url) as client:

            def plain() -> Any:
                return json.loads(plain_post(session, url, "resources/read", {"uri": URI}).content)

            def ours() -> Any:
                return client.read_resource(URI)

            seconds(plain, 100)
            seconds(ours, 100)
            a, b = in_turns([lambda: seconds(ours, 500), lambda: seconds(plain, 500)], rounds)
            show("uncached read, one thread", "%.0f µs" % (a * 1e6), "plain requests %.0f µs" % (b * 1e6), a / b, "<= 0.65")

            def many(work: Callable[[], Any], threads: int) -> float:
                each = 1600 // threads
                running = [threading.Thread(target=seconds, args=(work, each)) for _ in range(threads)]
                began = time.perf_counter()
                for thread in running:
                    thread.start()
                for thread in running:
                    thread.join()
                return threads * each / (time.perf_counter() - began)

            for threads in (8, 32):
                a, b = in_turns([lambda: many(ours, threads), lambda: many(plain, threads)], rounds)
                show("uncached reads/s, %d threads" % threads, "%.0f" % a, "plain requests %.0f" % b, a / b, ">= 1.4")


def cached(rounds: int) -> None:
    with Process(STORM) as server, Client(server.first) as client, client.watch(URI) as watch:
        watch.wait_until_current(timeout=30)
        known: Dict[str, Tuple[Any, float]] = {URI: (client.read_resource(URI), time.monotonic() + 1e6)}
        lock = threading.Lock()

        def ours() -> Any:
            return client.read_resource(URI)

        def dictionary() -> Any:
            with lock:
                value, until = known[URI]
                return value if time.monotonic() < until else None

        a, b = in_turns([lambda: seconds(ours, 100000), lambda: seconds(dictionary, 100000)], rounds)
        show("cached read, one thread", "%.0f ns" % (a * 1e9), "dictionary and lock %.0f ns" % (b * 1e9), a / b, "<= 3")

        def many(work: Callable[[], Any]) -> float:
            running = [threading.Thread(target=seconds, args=(work, 25000)) for _ in range(8)]
            began = time.perf_counter()
            for thread in running:
                thread.start()
            for thread in running:
                thread.join()
            return 8 * 25000 / (time.perf_counter() - began)

        a, b = in_turns([lambda: many(ours), lambda: many(dictionary)], rounds)
        show("cached reads/s, 8 threads", "%.0f" % a, "dictionary and lock %.0f" % b, a / b, ">= 1")


class PlainProgram:
    """What one would write with requests alone: listen, merge duplicates, read again. It shows what is possible."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.session = requests.Session()
        self.texts: Dict[str, str] = {}
        self.due: "queue.Queue[str]" = queue.Queue()
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
        for work in (self.listen, self.read):
            threading.Thread(target=work, daemon=True).start()

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
            time.sleep(0.005)  # a moment for duplicates to come
            with self.lock:
                self.waiting.pop(uri, None)
            result = json.loads(plain_post(self.session, self.url, "resources/read", {"uri": uri}).content)
            with self.changed:
                self.texts[uri] = result["result"]["contents"][0]["text"]
                self.changed.notify_all()


def storm(rounds: int) -> None:
    with Process(STORM) as server:
        reads: Dict[str, List[int]] = {"ours": [], "plain": []}
        number = [0]

        def play(who: str, settled: Callable[[str], None]) -> float:
            number[0] += 1
            began = time.perf_counter()
            server.tell(str(number[0]))
            settled("after %d" % number[0])
            took = time.perf_counter() - began
            server.tell("count")
            reads[who].append(int(server.line()))
            return took

        def ours() -> float:
            with Client(server.first) as client:
                with client.watch(*["docs://figures/%d" % number for number in range(100)]) as watch:
                    watch.wait_until_current(timeout=60)

                    def settled(text: str) -> None:
                        for change in watch.changes(timeout=60):
                            if change.uri == URI and change.current is not None and change.current.text == text:  # type: ignore
                                break
                        watch.wait_until_current(timeout=60)

                    return play("ours", settled)

        def plain() -> float:
            program = PlainProgram(server.first)

            def settled(text: str) -> None:
                with program.changed:
                    program.changed.wait_for(lambda: program.texts.get(URI) == text and not program.waiting, 60)

            try:
                return play("plain", settled)
            finally:
                program.stream.raw._fp.fp.raw._sock.shutdown(2)

        a, b = in_turns([ours, plain], max(2, rounds - 2))
        show("storm of 100,000 notices, 100 URIs", "%.2f s" % a, "plain requests program %.2f s" % b, a / b, "<= 1.2")
        per = statistics.median(reads["ours"]) / 100.0
        show("  reads a URI", "%.1f" % per, "(plain: %.1f)" % (statistics.median(reads["plain"]) / 100.0), per, "<= 5 reads")


FIGURES = {"import": imports, "uncached": uncached, "cached": cached, "storm": storm}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", nargs="*", choices=list(FIGURES) + [[]], help="which ones; all by default")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is taken (5)")
    arguments = parser.parse_args()
    for name in arguments.figures or FIGURES:
        FIGURES[name](arguments.rounds)


if __name__ == "__main__":
    main()
