"""uWSGI, which forks without a word to the interpreter: with and without threads, with and without its fork hooks."""
import re
import signal

import pytest

from .conftest import CONFIG
from .guest import README, Guest, eventually

WARNING = "Start uWSGI with --enable-threads"


def readme_configuration():
    [block] = re.findall(r"^    (\[uwsgi\]\n(?:    .*\n)+)", README, re.M)
    return re.sub("^    ", "", block, flags=re.M)


def running(program, server, configuration, **environ):
    guest = Guest([program, "--http-socket", "{socket}", "--ini", "uwsgi.ini"], server, begin=False, **environ)
    (guest.directory / "uwsgi.ini").write_text(configuration)
    guest.begin()
    return guest


def keeps_current(guest, server, streams):
    """Check all that holds where threads run."""
    first = guest.everyone("colour = blue")
    guest.no_socket_is_shared(first)
    server.wait_for_streams(streams, timeout=30)
    # Before its watch has read it, nobody is told that it changed.
    guest.everyone("colour = blue", path="/current")
    server.update(CONFIG, "colour = red")
    eventually(lambda: set(first) <= guest.noted("changed", "colour = red"), lambda: guest.events("changed"))
    guest.no_socket_is_shared(guest.everyone("colour = red"))
    if streams > len(first):
        guest.the_parent_goes_on(server, CONFIG)
        server.update(CONFIG, "colour = red")

    guest.send(signal.SIGHUP)
    eventually(lambda: not set(first) & guest.processes(), "not all workers were replaced")
    guest.no_socket_is_shared(guest.everyone("colour = red"))
    server.wait_for_streams(streams, timeout=30)
    assert WARNING not in guest.log()
    ended(guest, server)


def ended(guest, server, code=0):
    assert guest.end() == code
    server.wait_for_no_streams(timeout=30)
    assert "Traceback" not in guest.log()


def test_the_readme_tells_what_is_run_here():
    assert "enable-threads = true\n" in readme_configuration() and "lazy" not in readme_configuration()
    assert "``py-call-uwsgi-fork-hooks = true``" in README and "``lazy-apps``" in README


@pytest.mark.parametrize("waits", ["", "yes"], ids=["", "waited for before the fork"])
@pytest.mark.parametrize("age", ["old", "new"])
def test_workers_that_were_forked_with_the_application_keep_current(age, waits, uwsgi, old_uwsgi, server):
    with running(old_uwsgi if age == "old" else uwsgi, server, readme_configuration(), MCP_WAIT=waits) as guest:
        # Where the application is loaded for the workers, it has no stream.
        keeps_current(guest, server, streams=2)
        assert bool(waits) == (guest.pid in guest.noted("current", "colour = blue"))


@pytest.mark.parametrize("further", ["py-call-uwsgi-fork-hooks = true\n", "lazy-apps = true\n"])
def test_what_makes_no_difference_between_processes(further, uwsgi, server):
    with running(uwsgi, server, readme_configuration() + further) as guest:
        keeps_current(guest, server, streams=2 if "lazy" in further else 3)


def test_one_process_without_a_master_keeps_current(uwsgi, server):
    alone = readme_configuration().replace("master = true", "master = false").replace("processes = 2", "processes = 1")
    with running(uwsgi, server, alone) as guest:
        guest.everyone("colour = blue", workers=1, path="/current")
        server.wait_for_streams(1, timeout=30)
        server.update(CONFIG, "colour = red")
        eventually(lambda: guest.noted("changed", "colour = red") == {guest.pid}, lambda: guest.events("changed"))
        ended(guest, server, code=30)  # which is what uWSGI gives to a worker that is told to end


def test_a_hook_that_another_sets_later_takes_nothing_away(uwsgi, server):
    late = readme_configuration().replace("application:application", "late_hook:application")
    with running(uwsgi, server, late) as guest:
        first = guest.everyone("colour = blue")
        assert guest.noted("hook", "theirs") >= set(first)
        guest.no_socket_is_shared(first)
        server.wait_for_streams(2, timeout=30)
        server.update(CONFIG, "colour = red")
        guest.everyone("colour = red")
        ended(guest, server)


def test_without_threads_it_says_so_and_polls_when_it_is_asked(old_uwsgi, server):
    threadless = readme_configuration().replace("enable-threads = true\n", "")
    with running(old_uwsgi, server, threadless, MCP_POLL_INTERVAL="0.5") as guest:
        first = guest.everyone("colour = blue")
        guest.no_socket_is_shared(first)
        for answer in first.values():
            assert answer["threads"] == [] and answer["status"]["state"] == "polling"
            assert WARNING in answer["status"]["last_error"]
        assert guest.log().count("RuntimeWarning: uWSGI runs without threads") == 1

        server.update(CONFIG, "colour = red")
        guest.everyone("colour = red")
        eventually(lambda: guest.noted("changed", "colour = red") == set(first), lambda: guest.events("changed"))
        server.update(CONFIG, "colour = green")
        guest.everyone("colour = green", path="/current")
        assert server.count("subscriptions/listen") == 0
        ended(guest, server)


def test_without_threads_a_copy_is_read_once_in_an_interval(old_uwsgi, server):
    threadless = readme_configuration().replace("enable-threads = true\n", "").replace("processes = 2", "processes = 1")
    with running(old_uwsgi, server, threadless, MCP_POLL_INTERVAL="3600") as guest:
        guest.everyone("colour = blue", workers=1)
        read = server.count("resources/read")
        server.update(CONFIG, "colour = red")
        for _ in range(3):
            assert guest.ask()["text"] == "colour = blue"
        assert server.count("resources/read") == read
        ended(guest, server)
