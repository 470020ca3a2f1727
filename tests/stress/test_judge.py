"""The judge lets pass what the contract allows, and finds whatever it does not."""

from typing import Any

import pytest

from mcp_sync import Change, ReadResourceResult
from mcp_sync._deadline import monotonic
from mcp_sync.notices import ResourceUpdated

from .judge import Judge, Violation, text_of

URI = "docs://a"
OLDEST = 5.0


def read(text: str, started: float, uri: str = URI) -> Any:
    raw = {"contents": [{"uri": uri, "text": text}]}
    return ReadResourceResult.from_wire(raw, uri, started, started, 0.0, clock=monotonic)


@pytest.fixture
def judge() -> Judge:
    """A judge who saw versions 0 to 3 being written."""
    judge = Judge([URI], OLDEST)
    for _ in range(3):
        judge.write_ended(URI, judge.write_begins(URI))
    return judge


def version(number: int, started: float) -> Any:
    return read(text_of(URI, number), started)


def test_what_is_current_may_be_given_to_anybody(judge: Judge) -> None:
    for mode in ("use", "stale_ok", "refresh", "bypass"):
        call = judge.begins(0, URI, mode)
        judge.ends(call, version(3, monotonic()))
    assert judge.verdicts["fresh"] == 3 and not judge.violations


def test_a_version_that_is_being_written_may_be_seen_and_so_may_the_one_before_it(judge: Judge) -> None:
    assert judge.write_begins(URI) == 4
    for number in (3, 4):
        judge.ends(judge.begins(number, URI, "use"), version(number, monotonic()))


def test_an_old_copy_may_be_given_to_whoever_accepts_it(judge: Judge) -> None:
    began = monotonic()
    judge.write_ended(URI, judge.write_begins(URI))
    judge.noticed(ResourceUpdated("%s#4" % URI))
    judge.ends(judge.begins(0, URI, "stale_ok"), version(3, began).as_stale())
    assert judge.verdicts["stale"] == 1


def test_of_two_reads_that_overlap_the_later_one_may_bring_the_older_version(judge: Judge) -> None:
    began = monotonic()
    judge.write_begins(URI)
    judge.ends(judge.begins(0, URI, "use"), version(4, began))
    judge.ends(judge.begins(0, URI, "use"), version(3, monotonic()))
    assert judge.verdicts["overlapping"] == 1


@pytest.mark.parametrize("text", ["", "3", text_of(URI, 3)[:-1], text_of(URI, 3) + "x", text_of(URI, 9), text_of("docs://b", 3)])
def test_what_the_server_never_had_is_found(judge: Judge, text: str) -> None:
    with pytest.raises(Violation, match="never had"):
        judge.ends(judge.begins(0, URI, "use"), read(text, monotonic()))


def test_another_resource_s_answer_is_found(judge: Judge) -> None:
    with pytest.raises(Violation, match="never had"):
        judge.ends(judge.begins(0, URI, "use"), read(text_of(URI, 3), monotonic(), "docs://b"))


@pytest.mark.parametrize("mode", ["use", "stale_ok", "refresh", "bypass"])
def test_a_version_that_was_replaced_before_its_read_began_is_found_even_if_it_is_called_stale(judge: Judge, mode: str) -> None:
    call = judge.begins(0, URI, mode)
    result = version(2, monotonic())
    with pytest.raises(Violation, match="there was a newer one"):
        judge.ends(call, result.as_stale() if mode == "stale_ok" else result)


def test_an_old_copy_that_nobody_asked_for_is_found(judge: Judge) -> None:
    call = judge.begins(0, URI, "use")
    with pytest.raises(Violation, match="did not ask for one"):
        judge.ends(call, version(3, monotonic()).as_stale())


def test_a_copy_that_is_too_old_to_be_called_fresh_is_found(judge: Judge) -> None:
    call = judge.begins(0, URI, "use")
    with pytest.raises(Violation, match="older than anything"):
        judge.ends(call, version(3, monotonic() - OLDEST - 1.0))


@pytest.mark.parametrize("mode", ["refresh", "bypass"])
def test_a_read_that_is_not_new_though_a_new_one_was_asked_for_is_found(judge: Judge, mode: str) -> None:
    began = monotonic()
    with pytest.raises(Violation, match="asked for a new one"):
        judge.ends(judge.begins(0, URI, mode), version(3, began))


def test_what_is_older_than_a_notice_that_was_read_before_is_found(judge: Judge) -> None:
    began = monotonic()
    judge.write_ended(URI, judge.write_begins(URI))
    early = judge.begins(0, URI, "use")
    judge.noticed(ResourceUpdated("%s#4" % URI))
    judge.ends(early, version(3, began))
    with pytest.raises(Violation, match="a notice of version 4"):
        judge.ends(judge.begins(0, URI, "use"), version(3, began))


def test_what_goes_back_is_found_and_so_is_what_a_listener_was_told(judge: Judge) -> None:
    began = monotonic()
    judge.write_ended(URI, judge.write_begins(URI))
    judge.ends(judge.begins(0, URI, "use"), version(4, monotonic()))
    judge.ends(judge.begins(1, URI, "use"), version(3, began))  # which another thread may still be given
    with pytest.raises(Violation, match="version 4 was known"):
        judge.ends(judge.begins(0, URI, "use"), version(3, began))
    judge.changed(Change("updated", URI, None, version(4, monotonic())))
    with pytest.raises(Violation, match="version 4 was known"):
        judge.ends(judge.begins(1, URI, "use"), version(3, began))
