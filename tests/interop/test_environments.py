"""How the servers' environments are made; nothing is installed here."""
import threading

import pytest

from .environments import cache_directory, made

pytestmark = pytest.mark.interop


@pytest.fixture(autouse=True)
def _empty_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("MCP_SYNC_TEST_CACHE", str(tmp_path / "cache"))


def write_complete(directory):
    (directory / "complete").write_text("")


def must_not_run(directory):
    raise AssertionError("built again")


def test_an_environment_is_made_once():
    first = made("some", ["package==1"], write_complete)
    assert (first / "complete").exists()
    assert made("some", ["package==1"], must_not_run) == first


def test_another_requirement_is_another_environment():
    assert made("some", ["package==1"], write_complete) != made("some", ["package==2"], write_complete)


def test_a_build_that_failed_leaves_nothing_and_is_tried_again():
    def fail(directory):
        (directory / "half").write_text("")
        raise OSError("the network is gone")

    with pytest.raises(OSError, match="the network is gone"):
        made("some", ["package==1"], fail)
    assert [path.suffix for path in cache_directory().iterdir()] == [".lock"]
    environment = made("some", ["package==1"], write_complete)
    assert [path.name for path in environment.iterdir()] == ["complete"]


def test_what_a_killed_build_left_is_not_used_and_goes_away():
    complete = made("some", ["package==1"], write_complete)
    left = complete.with_name(complete.name + ".unfinished-abc")
    complete.rename(left)
    assert made("some", ["package==1"], write_complete) == complete
    assert not left.exists()


def test_two_at_once_build_only_once():
    building, go_on = threading.Event(), threading.Event()
    results = []

    def slow(directory):
        building.set()
        assert go_on.wait(timeout=10)
        write_complete(directory)

    first = threading.Thread(target=lambda: results.append(made("some", ["package==1"], slow)), daemon=True)
    first.start()
    assert building.wait(timeout=10)
    second = threading.Thread(target=lambda: results.append(made("some", ["package==1"], must_not_run)), daemon=True)
    second.start()
    assert results == []
    go_on.set()
    first.join(timeout=10)
    second.join(timeout=10)
    assert len(results) == 2 and results[0] == results[1]
