"""The client against servers that others wrote: what it serves as current is current.

Where the server listens, the poll interval is so long that only its notices can have told of a change. The one that
cannot listen is polled twice a second.
"""
import json
import queue
from contextlib import contextmanager

import pytest

import mcp_sync
from mcp_sync import Client, NotSupported, ResourceNotFound, ResourceUpdated, State, TransportError

from .following import LIMIT, Changes, Late, Program, eventually
from .real_server import CONFIG, GUIDE, LISTED, MISSING, README, SLOW, TEXTS
from .wire import REVISION

pytestmark = pytest.mark.interop

# In seconds.
NEVER = 3600.0
OFTEN = 0.5

ADDED = "docs://service/added"


@contextmanager
def connected(server):
    with Client(server.url, poll_interval=poll_interval(server)) as client:
        yield client


def as_json(server):
    return json.dumps({"target": server.url, "poll_interval": poll_interval(server)})


def poll_interval(server):
    return NEVER if server.listens else OFTEN


@contextmanager
def watching(client, server, *uris, **options):
    """A watch that has settled, and the changes that a thread, waiting in ``changes()``, gets from it."""
    with client.watch(*uris, **options) as watch:
        watch.wait_for_state(State.LIVE if server.listens else State.POLLING, timeout=LIMIT)
        watch.wait_until_current(timeout=LIMIT)
        changes = Changes(watch)
        yield watch, changes
    changes.end()


# -- reading -----------------------------------------------------------------------------------------------------------


def test_discover_says_who_the_server_is_and_what_it_can(real_server):
    with connected(real_server) as client:
        found = client.discover()
        assert client.protocol_version == REVISION
    assert REVISION in found.supported_versions
    assert found.server_info.name.startswith("interop-")
    assert found.instructions == "Documents that change while you look at them."
    assert found.capabilities["resources"] == {"subscribe": real_server.listens, "listChanged": real_server.listens}


def test_the_catalog_and_the_templates_are_listed(real_server):
    with connected(real_server) as client:
        resources = list(client.list_resources())
        templates = list(client.list_resource_templates())
    assert [resource.uri for resource in resources] == LISTED
    assert (resources[0].name, resources[0].title, resources[0].mime_type) == ("config", "Config", "text/markdown")
    assert [template.uri_template for template in templates] == ["docs://guides/{name}"]


def test_every_document_can_be_read(real_server):
    with connected(real_server) as client:
        results = {uri: client.read_resource(uri) for uri in TEXTS}
    assert {uri: result.text for uri, result in results.items()} == TEXTS
    assert [result.uri for result in results.values()] == list(TEXTS)
    assert not any(result.stale for result in results.values())
    assert len({result.version for result in results.values()}) == len(TEXTS)


def test_a_missing_resource_raises_not_found(real_server):
    with connected(real_server) as client:
        with pytest.raises(ResourceNotFound) as missing:
            client.read_resource(MISSING)
        assert missing.value.code == -32602
        assert client.read_resource(CONFIG).text == TEXTS[CONFIG]


def test_a_document_that_is_neither_watched_nor_hinted_is_read_anew_each_time(real_server):
    with connected(real_server) as client:
        assert client.read_resource(CONFIG).text == "retries = 3"
        real_server.write_state(CONFIG, "retries = 4")
        assert client.read_resource(CONFIG).text == "retries = 4"


# -- watching ----------------------------------------------------------------------------------------------------------


def test_a_watch_lives_by_notices_where_the_server_gives_them_and_by_polling_elsewhere(real_server):
    with connected(real_server) as client, watching(client, real_server, CONFIG, README) as (watch, _):
        watched = {CONFIG, README}
        assert watch.status.covered == (watched if real_server.listens else set())
        assert watch.status.uncovered == (set() if real_server.listens else watched)


def test_a_watched_document_is_served_from_memory(real_server):
    with Client(real_server.url, poll_interval=NEVER) as client:
        with watching(client, real_server, CONFIG):
            before = real_server.count_reads(CONFIG)
            assert {client.read_resource(CONFIG).text for _ in range(100)} == {TEXTS[CONFIG]}
            assert real_server.count_reads(CONFIG) - before <= 1


def test_a_watch_sees_an_update_that_the_server_publishes(real_server):
    with connected(real_server) as client, watching(client, real_server, CONFIG, README) as (watch, changes):
        old = client.read_resource(CONFIG)
        real_server.set_text(CONFIG, "retries = 4")
        change = changes.wait_for_text(CONFIG, "retries = 4")
        assert (change.kind, change.previous.text) == ("updated", "retries = 3")
        new = client.read_resource(CONFIG)
        assert (new.text, new.stale) == ("retries = 4", False)
        assert new.version != old.version
        assert client.read_resource(README).text == TEXTS[README]


def test_after_the_update_the_new_text_is_served_from_memory(listening_server):
    with connected(listening_server) as client, watching(client, listening_server, CONFIG) as (watch, changes):
        listening_server.set_text(CONFIG, "retries = 4")
        changes.wait_for_text(CONFIG, "retries = 4")
        watch.wait_until_current(timeout=LIMIT)
        before = listening_server.count_reads(CONFIG)
        assert {client.read_resource(CONFIG).text for _ in range(100)} == {"retries = 4"}
        assert listening_server.count_reads(CONFIG) - before <= 1


def test_a_listener_is_called_with_the_update(real_server):
    got = queue.Queue()
    with connected(real_server) as client, watching(client, real_server, CONFIG, on_change=got.put):
        real_server.set_text(CONFIG, "retries = 4")
        change = got.get(timeout=LIMIT)
        assert (change.kind, change.uri, change.current.text) == ("updated", CONFIG, "retries = 4")


def test_many_updates_end_with_the_last_text(real_server):
    with connected(real_server) as client, watching(client, real_server, CONFIG) as (_, changes):
        for number in range(4, 30):
            real_server.set_text(CONFIG, "retries = {}".format(number))
        changes.wait_for_text(CONFIG, "retries = 29")
        assert client.read_resource(CONFIG).text == "retries = 29"


def test_a_notice_without_a_change_is_no_change(listening_server):
    with connected(listening_server) as client, watching(client, listening_server, CONFIG) as (_, changes):
        before = listening_server.count_reads(CONFIG)
        listening_server.touch(CONFIG)
        eventually(lambda: listening_server.count_reads(CONFIG) > before)
        listening_server.set_text(CONFIG, "retries = 4")
        change = changes.wait_for(lambda change: True)
        assert (change.current.text, change.merged) == ("retries = 4", 0)


def test_a_second_watch_widens_the_coverage_without_a_gap(listening_server):
    with connected(listening_server) as client, watching(client, listening_server, CONFIG) as (first, of_first):
        with watching(client, listening_server, GUIDE) as (second, of_second):
            eventually(lambda: second.status.covered == {GUIDE})
            listening_server.set_text(GUIDE, "Unpack it carefully.")
            of_second.wait_for_text(GUIDE, "Unpack it carefully.")
            listening_server.set_text(CONFIG, "retries = 4")
            of_first.wait_for_text(CONFIG, "retries = 4")
            assert first.status.gaps == 0
        listening_server.set_text(CONFIG, "retries = 5")
        of_first.wait_for_text(CONFIG, "retries = 5")


def test_the_catalog_is_watched_apart_from_the_contents(real_server):
    with connected(real_server) as client, watching(client, real_server, CONFIG, catalog=True) as (_, changes):
        real_server.add_document(ADDED, "new")
        change = changes.wait_for(lambda change: change.kind == "catalog")
        assert (change.uri, change.added, change.removed) == (None, {ADDED}, frozenset())
        assert ADDED in [resource.uri for resource in client.list_resources()]
        assert client.read_resource(ADDED).text == "new"


def test_a_snapshot_stays_as_it_was_and_says_what_has_moved(real_server):
    with connected(real_server) as client, watching(client, real_server, CONFIG, README) as (watch, changes):
        pinned = watch.snapshot()
        real_server.set_text(CONFIG, "retries = 4")
        changes.wait_for_text(CONFIG, "retries = 4")
        assert pinned[CONFIG].text == "retries = 3"
        assert not pinned.is_current()
        assert CONFIG in [moved.uri for moved in pinned.moved() if moved.kind == "updated"]
        watch.wait_until_current(timeout=LIMIT)
        assert watch.snapshot()[CONFIG].text == "retries = 4"


# -- the server dies ---------------------------------------------------------------------------------------------------


def test_a_server_is_killed_and_returns_with_another_text_and_the_watch_shows_it_unasked(real_server):
    with connected(real_server) as client, watching(client, real_server, CONFIG, README) as (watch, changes):
        real_server.kill()
        real_server.write_state(CONFIG, "retries = 9")
        real_server.restart()
        change = changes.wait_for_text(CONFIG, "retries = 9")
        assert (change.kind, change.previous.text) == ("updated", "retries = 3")
        assert client.read_resource(CONFIG).text == "retries = 9"
        # And all is as before: what the returned server publishes is seen too.
        watch.wait_for_state(State.LIVE if real_server.listens else State.POLLING, timeout=LIMIT)
        real_server.set_text(README, "# Back again")
        changes.wait_for_text(README, "# Back again")
        assert client.read_resource(README).text == "# Back again"


def test_while_the_server_is_dead_old_data_is_an_error_or_labelled(listening_server):
    with connected(listening_server) as client, watching(client, listening_server, CONFIG) as (watch, _):
        listening_server.kill()
        watch.wait_for_state(State.INTERRUPTED, timeout=LIMIT)
        with pytest.raises(TransportError):
            client.read_resource(CONFIG)
        old = client.read_resource(CONFIG, stale_ok=True)
        assert (old.text, old.stale) == (TEXTS[CONFIG], True)
        assert not watch.is_current


def test_a_document_that_vanished_while_the_server_was_dead_is_gone_even_for_those_who_accept_old_data(real_server):
    with connected(real_server) as client, watching(client, real_server, CONFIG, README) as (_, changes):
        real_server.kill()
        real_server.write_state(README, None)
        real_server.restart()
        changes.wait_for(lambda change: (change.kind, change.uri) == ("removed", README))
        with pytest.raises(ResourceNotFound):
            client.read_resource(README, stale_ok=True)
        assert client.read_resource(CONFIG).text == TEXTS[CONFIG]


# -- an update lands while a read is in flight -------------------------------------------------------------------------


def test_a_late_result_does_not_replace_the_newer_one_that_overtook_it(listening_server):
    with connected(listening_server) as client, watching(client, listening_server, SLOW) as (watch, changes):
        listening_server.hold_slow()
        late = Late(client, SLOW, cache_mode="refresh")
        listening_server.wait_slow_reached()
        listening_server.set_text(SLOW, "slow, second edition")
        changes.wait_for_text(SLOW, "slow, second edition")
        assert client.read_resource(SLOW).text == "slow, second edition"
        assert late.waits
        listening_server.release_slow()
        assert late.result().text == "slow, first edition"
        assert client.read_resource(SLOW).text == "slow, second edition"
        assert watch.snapshot()[SLOW].text == "slow, second edition"


def test_a_late_result_that_arrives_before_the_new_one_is_not_kept_as_fresh(listening_server):
    with connected(listening_server) as client, watching(client, listening_server, SLOW) as (watch, changes):
        listening_server.hold_slow(1)
        listening_server.hold_slow(2)
        late = Late(client, SLOW, cache_mode="refresh")
        listening_server.wait_slow_reached(number=1)
        listening_server.set_text(SLOW, "slow, second edition")
        # The second read is the watch's own, so the notice has been read.
        listening_server.wait_slow_reached(number=2)
        assert late.waits
        listening_server.release_slow(1)
        assert late.result().text == "slow, first edition"
        assert not watch.is_current
        later = Late(client, SLOW)
        listening_server.release_slow(2)
        assert later.result().text == "slow, second edition"
        changes.wait_for_text(SLOW, "slow, second edition")
        assert client.read_resource(SLOW).text == "slow, second edition"


def test_an_update_during_the_first_read_of_a_watch_is_not_lost(listening_server):
    listening_server.hold_slow()
    with connected(listening_server) as client, client.watch(SLOW) as watch:
        listening_server.wait_slow_reached()
        listening_server.set_text(SLOW, "slow, second edition")
        listening_server.release_slow()
        eventually(lambda: client.read_resource(SLOW, timeout=LIMIT).text == "slow, second edition")
        watch.wait_until_current(timeout=LIMIT)
        assert watch.snapshot()[SLOW].text == "slow, second edition"


def test_a_change_during_a_poll_is_seen_by_the_next_one(deaf_server):
    with connected(deaf_server) as client, watching(client, deaf_server, SLOW) as (_, changes):
        deaf_server.hold_slow()
        deaf_server.wait_slow_reached()
        deaf_server.set_text(SLOW, "slow, second edition")
        deaf_server.release_slow()
        changes.wait_for_text(SLOW, "slow, second edition")
        assert client.read_resource(SLOW).text == "slow, second edition"


# -- the raw stream ----------------------------------------------------------------------------------------------------


def test_the_raw_stream_gives_the_notices_as_they_come(listening_server):
    with connected(listening_server) as client:
        with client.listen(CONFIG, README, resources_list_changed=True, timeout=LIMIT) as stream:
            assert stream.acknowledged.resource_subscriptions == {CONFIG, README}
            assert stream.acknowledged.resources_list_changed
            listening_server.touch(CONFIG)
            listening_server.set_text(README, "# Another service")
            listening_server.add_document(ADDED, "new")
            notices = iter(stream)
            assert next(notices) == ResourceUpdated(CONFIG)
            assert next(notices) == ResourceUpdated(README)
            assert next(notices) == mcp_sync.ResourcesListChanged()


def test_the_raw_stream_ends_with_an_error_when_the_server_dies(listening_server):
    with connected(listening_server) as client:
        with client.listen(CONFIG, timeout=LIMIT) as stream:
            listening_server.kill()
            with pytest.raises(TransportError):
                next(iter(stream))


def test_the_raw_stream_of_a_server_that_cannot_listen_is_not_supported(deaf_server):
    with connected(deaf_server) as client:
        with pytest.raises(NotSupported):
            with client.listen(CONFIG, timeout=LIMIT):
                pass


# -- fork --------------------------------------------------------------------------------------------------------------


def test_a_forked_child_reads_the_current_text_and_the_stream_of_its_parent_goes_on(real_server):
    with Program("read_after_fork.py", as_json(real_server), CONFIG) as program:
        assert program.says() == {"parent": "retries = 3"}
        # Nobody announces it, so that only a read of the child's own can show it.
        real_server.write_state(CONFIG, "retries = 4")
        program.go_on()
        assert program.says() == {"child": ["retries = 4", "retries = 4"]}
        real_server.touch(CONFIG)
        program.go_on()
        state = "LIVE" if real_server.listens else "POLLING"
        assert program.says() == {"changed": "retries = 4", "state": state, "gaps": 0}
        assert program.says() == {"parent": "retries = 4"}
        assert program.ends() == 0
