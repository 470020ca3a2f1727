"""A server that costs next to nothing, in a process of its own, so that the clients' own cost shows: ``python canned.py``.

It prints its port. It has every ``docs://figures/…`` that it is asked for, all with the same text. Each line on its standard
input is a command, which it answers with a line:

* ``text TEXT``: what the resources hold from now on; says nothing of it to anybody.
* ``update TEXT``: the same, and notices about ``docs://figures/0``; answered with the moment just before (monotonic).
* ``delay SECONDS``: how long each read takes from now on.
* ``ttl MILLISECONDS``: the lifetime of what is read from now on.
* ``drop``: ends all streams of notices, and forgets how many reads there were.
* ``since-stream N``: waits until there were N reads after the next stream was opened; answered with the seconds that took.
* ``streams``: how many streams are open.
"""

import json
import re
import socket
import sys
import threading
import time

META = {"io.modelcontextprotocol/serverInfo": {"name": "canned", "version": "1"}}
DESCRIBED = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"resources": {"subscribe": True, "listChanged": True}},
    "ttlMs": 3600000,
    "cacheScope": "private",
    "_meta": META,
}
LENGTH = re.compile(rb"(?i)content-length: *(\d+)")
URI = re.compile(rb'"uri": ?"([^"]*)"')
ID = re.compile(rb'"id": ?("[^"]*"|\d+)')

state = {"text": "x" * 100, "delay": 0.0, "ttl": 0}
lock = threading.Lock()
changed = threading.Condition(lock)
streams = []
reads = [0, 0.0, 0.0]  # how many, when the first stream after "drop" was opened, when the last read was answered


def event(message):
    data = b"data: " + json.dumps(message).encode() + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(data), data)


def listen(connection, request):
    meta = {"io.modelcontextprotocol/subscriptionId": request["id"]}
    granted = {"notifications": request["params"]["notifications"], "_meta": meta}
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    acknowledged = {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": granted}
    with changed:
        streams.append((connection, meta))
        if not reads[1]:
            reads[1] = time.monotonic()
        connection.sendall(head + event(acknowledged))
        changed.notify_all()


def answer(connection, data):
    method = re.search(rb'"method": ?"([^"]*)"', data).group(1)
    if method == b"subscriptions/listen":
        return listen(connection, json.loads(data.decode()))
    if b'"id"' not in data:
        return connection.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
    if method == b"server/discover":
        result = json.dumps(DESCRIBED).encode()
    elif method == b"resources/read":
        if state["delay"]:
            time.sleep(state["delay"])
        result = (
            b'{"resultType":"complete","contents":[{"uri":"%s","mimeType":"text/plain","text":"%s"}],'
            b'"ttlMs":%d,"cacheScope":"private"}' % (URI.search(data).group(1), state["text"].encode(), state["ttl"])
        )
    else:
        result = b'{"resultType":"complete"}'
    body = b'{"jsonrpc":"2.0","id":' + ID.search(data).group(1) + b',"result":' + result + b"}"
    connection.sendall(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    )
    if method == b"resources/read":
        with changed:
            reads[0] += 1
            reads[2] = time.monotonic()
            changed.notify_all()


def serve(connection):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    data = b""
    try:
        while True:
            while b"\r\n\r\n" not in data:
                more = connection.recv(65536)
                if not more:
                    return
                data += more
            head, _, data = data.partition(b"\r\n\r\n")
            found = LENGTH.search(head)
            if found is None:
                connection.sendall(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")
                continue
            length = int(found.group(1))
            while len(data) < length:
                data += connection.recv(65536)
            answer(connection, data[:length])
            data = data[length:]
    except OSError:
        pass
    finally:
        with lock:
            streams[:] = [stream for stream in streams if stream[0] is not connection]
        connection.close()


def command(name, argument):
    if name in ("text", "update"):
        state["text"] = argument
        began = time.monotonic()
        if name == "update":
            with lock:
                for connection, meta in streams:
                    params = {"uri": "docs://figures/0", "_meta": meta}
                    connection.sendall(
                        event({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params})
                    )
        return began
    if name == "delay":
        state["delay"] = float(argument)
    elif name == "ttl":
        state["ttl"] = int(argument)
    elif name == "drop":
        with lock:
            reads[:] = [0, 0.0, 0.0]
            for connection, _ in streams:
                connection.shutdown(socket.SHUT_RDWR)
    elif name == "since-stream":
        with changed:
            changed.wait_for(lambda: reads[0] >= int(argument), 300)
            return reads[2] - reads[1]
    elif name == "streams":
        with lock:
            return len(streams)
    return "done"


def main():
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", 0))
    listener.listen(400)
    print(listener.getsockname()[1], flush=True)

    def accept():
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    for line in sys.stdin:
        name, _, argument = line.strip().partition(" ")
        print(command(name, argument), flush=True)


if __name__ == "__main__":
    main()
