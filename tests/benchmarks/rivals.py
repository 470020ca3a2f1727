"""One way to read resources, in a process of its own and in the environment that it needs: ``python rivals.py KIND URL``.

Each line on its standard input is a command as JSON, ``[name, arguments…]``; it is answered with a line of JSON.
"""

import gc
import json
import queue
import sys
import threading
import time
import tracemalloc

URI = "docs://figures/0"
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "figures", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def plain_request(method, params):
    headers = {
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": method,
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
    }
    if "uri" in params:
        headers["Mcp-Name"] = params["uri"]
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}), headers


def text_of(result):
    return result["result"]["contents"][0]["text"]


class Plain:
    """What one would write without a client of the protocol."""

    def follow(self, texts):
        lines = self.stream("subscriptions/listen", {"notifications": {"resourceSubscriptions": [URI]}})
        told = threading.Event()

        def run():
            for line in lines:
                if line.startswith(b"data:"):
                    told.set()
                    if json.loads(line[5:].decode())["method"] == "notifications/resources/updated":
                        texts.put((self.read(URI), time.monotonic()))

        threading.Thread(target=run, daemon=True).start()
        told.wait(30)


class Requests(Plain):
    """Plain ``requests``, with one session for all threads."""

    def __init__(self, url):
        import requests

        self.url = url
        self.session = requests.Session()
        self.session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=32))

    def read(self, uri):
        body, headers = plain_request("resources/read", {"uri": uri})
        return text_of(json.loads(self.session.post(self.url, data=body, headers=headers).content))

    def stream(self, method, params):
        body, headers = plain_request(method, params)
        return self.session.post(self.url, data=body, headers=headers, stream=True).iter_lines(chunk_size=1)


class HTTPClient(Plain):
    """Plain ``http.client``, with a connection for each thread."""

    def __init__(self, url):
        import http.client
        from urllib.parse import urlsplit

        self.make = lambda: http.client.HTTPConnection(urlsplit(url).netloc)
        self.local = threading.local()

    def read(self, uri):
        connection = getattr(self.local, "connection", None)
        if connection is None:
            connection = self.local.connection = self.make()
        body, headers = plain_request("resources/read", {"uri": uri})
        connection.request("POST", "/mcp", body, headers)
        return text_of(json.loads(connection.getresponse().read()))

    def stream(self, method, params):
        body, headers = plain_request(method, params)
        connection = self.make()
        connection.request("POST", "/mcp", body, headers)
        return connection.getresponse()


class Ours:
    def __init__(self, url):
        from mcp_sync import Client

        self.client = Client(url)

    def read(self, uri):
        return self.client.read_resource(uri).text

    def hits(self):
        watch = self.client.watch(URI)
        watch.wait_until_current(timeout=30)

    def follow(self, texts):
        watch = self.client.watch(URI)
        watch.wait_until_current(timeout=30)

        def run():
            for change in watch.changes():
                texts.put((change.current.text, time.monotonic()))

        threading.Thread(target=run, daemon=True).start()

    def watch(self, count):
        self.watched = self.client.watch(*["docs://figures/%d" % number for number in range(count)])
        self.watched.wait_until_current(timeout=120)


class Dictionary:
    """A dictionary under a lock, with an end of each entry's life: the least that a cache can be."""

    def __init__(self, url):
        self.lock = threading.Lock()
        self.known = {URI: ("x" * 100, time.monotonic() + 1e6)}

    def read(self, uri):
        with self.lock:
            value, until = self.known[uri]
            return value if time.monotonic() < until else None


class Portal:
    """A client for event loops, on one that runs in a thread."""

    def __init__(self, url):
        from anyio.from_thread import start_blocking_portal

        self.context = start_blocking_portal()
        self.portal = self.context.__enter__()
        self.client = self.portal.wrap_async_context_manager(self.make(url)).__enter__()

    def read(self, uri):
        return self.portal.call(self.client.read_resource, uri)

    def hits(self):
        self.read(URI)

    def follow(self, texts):
        opened = threading.Event()

        async def run():
            async with self.client.listen(resource_subscriptions=[URI]) as subscription:
                opened.set()
                async for _ in subscription:
                    result = await self.client.read_resource(URI)
                    texts.put((result.contents[0].text, time.monotonic()))

        self.portal.start_task_soon(run)
        opened.wait(30)


class Official(Portal):
    def make(self, url):
        from mcp import Client

        return Client(url, cache=None)


class OfficialCache(Portal):
    def make(self, url):
        from mcp import Client

        return Client(url)


class FastMCP(Portal):
    def make(self, url):
        from fastmcp import Client

        return Client(url, mode="auto")


class AsyncioRun:
    """The official client, and an event loop for each call."""

    def __init__(self, url):
        self.url = url

    def read(self, uri):
        import asyncio

        from mcp import Client

        async def read():
            async with Client(self.url) as client:
                return await client.read_resource(uri)

        return asyncio.run(read())


KINDS = {
    "mcp_sync": Ours,
    "requests": Requests,
    "http.client": HTTPClient,
    "dictionary": Dictionary,
    "official": Official,
    "official, cache": OfficialCache,
    "fastmcp": FastMCP,
    "asyncio.run": AsyncioRun,
}


def rate(read, threads, times):
    """Return the reads a second that so many threads make together."""
    ready, failed = threading.Barrier(threads + 1), []

    def work():
        ready.wait(60)
        try:
            for _ in range(times // threads):
                read(URI)
        except Exception as error:
            failed.append(error)

    running = [threading.Thread(target=work) for _ in range(threads)]
    for thread in running:
        thread.start()
    ready.wait(60)
    began = time.perf_counter()
    for thread in running:
        thread.join()
    if failed:
        raise failed[0]
    return (times // threads) * threads / (time.perf_counter() - began)


def resident():
    """Return the resident memory of this process in KiB."""
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4


def main():
    kind, url = KINDS[sys.argv[1]], sys.argv[2]
    if sys.argv[3:] == ["once"]:
        kind(url).read(URI)
        return
    rival = kind(url)
    texts = queue.Queue()
    kept, before = [], []

    def more(count):
        memory, threads = resident(), threading.active_count()
        for _ in range(count):
            kept.append(kind(url))
            kept[-1].read(URI)
        return (resident() - memory) / count, (threading.active_count() - threads) / count

    def watch(count, trace):
        rival.watch(1)  # loads what it needs
        if trace:
            tracemalloc.start()
        before.append(resident())
        rival.watch(count)

    def weight(count):
        """Return what each of the watched weighs in KiB: what is allocated for it if that is traced, or resident otherwise."""
        gc.collect()
        if tracemalloc.is_tracing():
            return tracemalloc.get_traced_memory()[0] / 1024.0 / count
        return (resident() - before[-1]) / count

    def wait(text):
        while True:
            came, moment = texts.get(timeout=30)
            if came == text:
                return moment

    commands = {
        "rate": lambda threads, times: rate(rival.read, threads, times),
        "hits": lambda: rival.hits(),
        "follow": lambda: rival.follow(texts),
        "wait": wait,
        "more": more,
        "watch": watch,
        "weight": weight,
        "threads": lambda: threading.active_count() - 1,
    }
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        print(json.dumps(commands[name](*arguments)), flush=True)


if __name__ == "__main__":
    main()
