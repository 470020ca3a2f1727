"""Programs under gevent: each function is one, and is run in a process of its own, with everything patched first.

Where the others than the waiting greenlet did not go on, ``go`` would never be said, and nothing would end.
"""
from gevent import monkey

monkey.patch_all()

import multiprocessing  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
import threading  # noqa: E402

import gevent  # noqa: E402

import mcp_sync.refresher  # noqa: E402
from mcp_sync import Client, ClientClosed, Command, State  # noqa: E402

CONFIG = "docs://service/config"


def client(**options):
    target = os.environ["MCP_COMMAND"].split("\n") if "MCP_COMMAND" in os.environ else os.environ["MCP_URL"]
    return Client(Command(target) if isinstance(target, list) else target, timeout=20, **options)


def say(word):
    """Tell the test, which then does something, and wait for its word without blocking the other greenlets."""
    print(word, flush=True)
    gevent.get_hub().threadpool.apply(sys.stdin.readline)


def reads_wait_together():
    """Several greenlets wait for answers at the same time, and another one goes on."""
    with client() as one:
        one.discover()
        waiting = [gevent.spawn(lambda: one.read_resource(CONFIG, cache_mode="bypass").text) for _ in range(3)]
        say("go")
        print([greenlet.get(timeout=20) for greenlet in waiting], flush=True)


def a_watch_is_waited_for():
    with client(throttle=0.01) as one, one.watch(CONFIG) as watch:
        watch.wait_until_current(timeout=20)
        changes = watch.changes(timeout=20)
        following = gevent.spawn(next, changes)
        gevent.sleep(0)
        say("go")
        print(following.get(timeout=20).current.text, watch.status.state.value, flush=True)


def close_wakes_those_who_wait():
    one = client()
    watch = one.watch(CONFIG)
    watch.wait_for_state(State.LIVE, timeout=20)

    def read():
        try:
            return one.read_resource(CONFIG, cache_mode="bypass").text
        except ClientClosed as error:
            return type(error).__name__

    reading = gevent.spawn(read)
    say("go")
    one.close()
    print(reading.get(timeout=20), flush=True)


def a_gevent_timeout_passes_through():
    with client() as one:
        for _ in range(2):
            try:
                with gevent.Timeout(0.2):
                    one.read_resource(CONFIG)
            except gevent.Timeout:
                print("timed out", flush=True)
        say("go")
        print(one.read_resource(CONFIG).text, flush=True)


def in_child(one, watch, answers):
    old = one.read_resource(CONFIG)
    watch.wait_until_current(timeout=20)
    changes = watch.changes(timeout=20)
    answers.write(b"%s %s\n" % (old.text.encode(), watch.status.state.value.encode()))
    while True:
        change = next(changes)
        if change.current.text == "colour = red":
            break
    # What lives on of the parent's greenlets has looked again by now, and keeps out of it.
    for _ in range(5):
        threading.Event().wait(2 * mcp_sync.refresher._LOOK_AGAIN)
        assert one._upkeep._refresher._idle in (0, 1), one._upkeep._refresher._idle
    answers.write(b"%s\n" % change.current.text.encode())


def a_forked_child_goes_on_and_so_does_the_parent():
    mcp_sync.refresher._LOOK_AGAIN = 0.05
    one = client(throttle=0.01)
    watch = one.watch(CONFIG, on_change=lambda change: None)
    watch.wait_until_current(timeout=20)
    out, into = os.pipe()
    answers = os.fdopen(into, "wb", 0)
    process = multiprocessing.get_context("fork").Process(target=in_child, args=(one, watch, answers))
    process.start()
    answers.close()
    lines = os.fdopen(out, "rb", 0)
    print(gevent.get_hub().threadpool.apply(lines.readline).decode().strip(), flush=True)
    following = gevent.spawn(next, watch.changes(timeout=20))
    say("go")
    print(gevent.get_hub().threadpool.apply(lines.readline).decode().strip(), flush=True)
    print(following.get(timeout=20).current.text, watch.status.gaps, watch.status.reconnects, flush=True)
    process.join(20)
    print(process.exitcode, flush=True)
    lines.close()
    one.close()


globals()[sys.argv[1]]()
