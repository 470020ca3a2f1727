"""gunicorn: its kinds of workers, with and without preloading, recycled and reloaded."""
import re
import signal
import textwrap

import pytest

from .conftest import CONFIG
from .guest import README, Guest, eventually

WORKERS = 2
#: So many requests, and one worker in so many, and it is replaced.
RECYCLED_AFTER = 100

PATCHED = "from gevent import monkey\nmonkey.patch_all()\n"


def configuration(worker_class, preload, patched):
    """The README's configuration, with another kind of workers and so on."""
    text = readme_configuration()
    if patched:
        text = PATCHED + text
    text = re.sub(r'(worker_class = )"\w+"', r'\1"{}"'.format(worker_class), text)
    text = re.sub(r"(preload_app = )\w+", r"\g<1>{}".format(preload), text)
    text = re.sub(r"(workers = )\d+", r"\g<1>{}".format(WORKERS), text)
    return re.sub(r"(max_requests = )\d+", r"\g<1>{}".format(RECYCLED_AFTER), text)


def readme_configuration():
    [block] = re.findall(r"^``gunicorn\.conf\.py``.*::\n\n((?:    .*\n)+)", README, re.M)
    return re.sub("^    ", "", block, flags=re.M)


def test_the_readme_tells_what_is_run_here():
    lines = readme_configuration().splitlines()
    assert [line.split(" = ")[0] for line in lines] == ["preload_app", "workers", "worker_class", "max_requests"]
    assert textwrap.indent(PATCHED, "    ") in README


@pytest.mark.parametrize("preload", [False, True], ids=["each loads", "preload"])
@pytest.mark.parametrize("kind", ["sync", "gthread", "gevent", "gevent patched first"])
def test_workers_keep_current_are_recycled_and_reloaded_and_nothing_is_left(kind, preload, python, server):
    worker_class, _, patched = kind.partition(" ")
    with Guest([python, "-m", "gunicorn", "--bind", "unix:{socket}", "application:application"], server, begin=False) as guest:
        (guest.directory / "gunicorn.conf.py").write_text(configuration(worker_class, preload, patched))
        guest.begin()

        first = guest.everyone("colour = blue")
        guest.no_socket_is_shared(first)
        streams = WORKERS + preload
        server.wait_for_streams(streams, timeout=30)

        # Before its watch has read it, nobody is told that it changed.
        current = set(guest.everyone("colour = blue", path="/current"))
        server.update(CONFIG, "colour = red")

        def all_are_told():
            # By a notice on each one's own stream; but for those that were replaced meanwhile.
            told = guest.noted("changed", "colour = red")
            return told and current & guest.processes() <= told

        eventually(all_are_told, lambda: guest.events("changed"))
        guest.no_socket_is_shared(guest.everyone("colour = red"))

        eventually(lambda: guest.ask() and not set(first) <= guest.processes(), "no worker was replaced")
        server.update(CONFIG, "colour = green")
        guest.everyone("colour = green")

        before = guest.children()
        guest.send(signal.SIGHUP)
        eventually(lambda: not before & guest.processes(), "not all workers were replaced")
        guest.no_socket_is_shared(guest.everyone("colour = green"))
        server.wait_for_streams(streams, timeout=30)
        if preload:
            guest.the_parent_goes_on(server, CONFIG)

        assert guest.end() == 0
        server.wait_for_no_streams(timeout=30)
        assert "Traceback" not in guest.log() and "SIGKILL" not in guest.log()


@pytest.mark.parametrize("kind", ["sync", "gthread", "gevent"])
def test_a_worker_that_is_told_to_end_in_the_middle_of_a_read_ends(kind, python, server):
    command = [python, "-m", "gunicorn", "--bind", "unix:{socket}", "--worker-class", kind, "application:application"]
    with Guest(command, server) as guest:
        guest.everyone("colour = blue", workers=1)
        with server.hold("resources/read") as gate:
            # Read again because of the notice, and whoever asks waits for that.
            server.update(CONFIG, "colour = red")
            gate.wait_reached(1, timeout=30)
            asking = guest.asking()
            # Not gracefully, which means to wait for what is being answered.
            assert guest.end(signal.SIGINT) == 0
            asking.join()
        assert "SIGKILL" not in guest.log()
    server.wait_for_no_streams(timeout=30)
