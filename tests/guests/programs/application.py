"""A WSGI application as plain as can be: one client and one watch, made when the module is imported.

Each answer tells of the process that gives it.
"""
import atexit
import json
import os
import socket
import threading

from mcp_sync import Client

URL, CONFIG, EVENTS = os.environ["MCP_URL"], "docs://service/config", os.environ["MCP_EVENTS"]


def note(kind, text):
    """One line for the test, in a file that all processes append to."""
    with open(EVENTS, "a") as events:
        events.write("%s %d %s\n" % (kind, os.getpid(), text))


client = Client(URL, timeout=10, poll_interval=float(os.environ.get("MCP_POLL_INTERVAL", "30")))
watch = client.watch(CONFIG, on_change=lambda change: note("changed", change.current.text))
if os.environ.get("MCP_WAIT"):
    watch.wait_until_current(timeout=10)
    note("current", client.read_resource(CONFIG).text)
note("imported", threading.current_thread().name)
atexit.register(lambda: note("left", ""))


def connections():
    """The inodes of this process's sockets whose other end is the server."""
    port, found = int(URL.rsplit(":", 1)[1].split("/")[0]), []
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink("/proc/self/fd/" + name)
            if not target.startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(name))) as copy:
                if copy.family == socket.AF_INET and copy.getpeername()[1] == port:
                    found.append(target)
        except OSError:
            pass
    return found


def application(environ, start_response):
    """``/``: what is current. ``/old``: an old copy will do. ``/current``: waits until the watch says that it is."""
    path = environ["PATH_INFO"]
    answer = {"pid": os.getpid()}
    try:
        if path == "/current":
            watch.wait_until_current(timeout=10)
        # The issue of all this: a process that was just forked has it within two seconds.
        result = client.read_resource(CONFIG, timeout=2, stale_ok=path == "/old")
        answer.update(text=result.text, stale=result.stale)
    except Exception as error:
        answer.update(error="%s: %s" % (type(error).__name__, error))
    answer["status"] = watch.status.to_json()
    answer["threads"] = sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("mcp_sync"))
    answer["connections"] = connections()
    body = json.dumps(answer).encode("utf-8")
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]
