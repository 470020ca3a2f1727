"""Reading through the cache: hits, joins, refreshes, old copies, refusals."""

import threading
from typing import Any, Dict, Iterator, List

import pytest

from mcp_sync import (
    AuthorizationError,
    Client,
    ClientClosed,
    InputRequired,
    NotSupported,
    ProtocolError,
    RequestTimeout,
    ResourceNotFound,
    ServerError,
    StaleError,
    TransportError,
    UnsupportedVersion,
)
from mcp_sync.testing import Server, faults

CONFIG = "docs://service/config"


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        server.add(CONFIG, "colour = blue", mime_type="text/plain")
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(server.url, throttle=0.01) as client:
        yield client


class Callers:
    """Threads that each make one call, and what became of it."""

    def __init__(self) -> None:
        self.threads: List[threading.Thread] = []
        self.results: Dict[str, Any] = {}

    def start(self, name: str, call: Any) -> None:
        def run() -> None:
            try:
                self.results[name] = call()
            except Exception as error:
                self.results[name] = error

        self.threads.append(threading.Thread(target=run, name=name))
        self.threads[-1].start()

    def wait(self) -> Dict[str, Any]:
        for thread in self.threads:
            thread.join(20)
            assert not thread.is_alive(), "%s hangs" % thread.name
        return self.results


def test_a_result_says_where_it_comes_from_and_how_old_it_is(client: Client) -> None:
    result = client.read_resource(CONFIG)
    assert (result.uri, result.text, result.mime_type, result.stale) == (CONFIG, "colour = blue", "text/plain", False)
    assert result.read_at.tzinfo is not None and 0 <= result.age < 60
    again = client.read_resource(CONFIG)
    assert again.version == result.version and len(result.version) == 16


def test_without_watch_and_hint_every_call_is_a_read(server: Server, client: Client) -> None:
    for _ in range(3):
        client.read_resource(CONFIG)
    assert server.count("resources/read") == 3


def test_a_hint_of_the_server_is_believed(server: Server, client: Client) -> None:
    server.add("docs://hinted", "kept", ttl_ms=60000)
    for _ in range(3):
        assert client.read_resource("docs://hinted").text == "kept"
    assert server.count("resources/read", uri="docs://hinted") == 1
    client.read_resource("docs://hinted", cache_mode="refresh")
    assert server.count("resources/read", uri="docs://hinted") == 2
    client.read_resource("docs://hinted", cache_mode="bypass")
    assert server.count("resources/read", uri="docs://hinted") == 3
    client.read_resource("docs://hinted")
    assert server.count("resources/read", uri="docs://hinted") == 3


@pytest.mark.parametrize("ttl", [None, -1, 1.5, "300000", True, 0])
def test_a_hint_that_makes_no_sense_is_none(server: Server, client: Client, ttl: Any) -> None:
    server.add("docs://odd", "odd", ttl_ms=ttl)
    for _ in range(2):
        assert client.read_resource("docs://odd").text == "odd"
    assert server.count("resources/read", uri="docs://odd") == 2


def test_a_default_lifetime_is_the_users_to_give(server: Server) -> None:
    with Client(server.url, default_ttl=60.0) as client:
        for _ in range(3):
            client.read_resource(CONFIG)
        assert server.count("resources/read") == 1


def test_callers_of_a_watched_resource_join_one_read(server: Server, client: Client) -> None:
    with client.watch(CONFIG) as watch:
        watch.wait_until_current(timeout=10)
        callers = Callers()
        with server.hold("resources/read", CONFIG) as gate:
            server.update(CONFIG, "colour = red")
            gate.wait_reached(1)
            for number in range(8):
                callers.start(str(number), lambda: client.read_resource(CONFIG).text)
            # All eight wait for the read of the refresher: the cache says so, no time has to pass.
            flight = client._cache._states[("", "resources/read", CONFIG)].flight
            assert flight is not None
            gate.release()
        assert set(callers.wait().values()) == {"colour = red"}
        assert server.count("resources/read") == 2


def test_a_refresh_sees_the_callers_own_change_whatever_is_in_flight(server: Server, client: Client) -> None:
    with client.watch(CONFIG) as watch:
        watch.wait_until_current(timeout=10)
        callers = Callers()
        with server.hold("resources/read", CONFIG, at="answer") as gate:
            callers.start("early", lambda: client.read_resource(CONFIG, cache_mode="refresh").text)
            gate.wait_reached(1)
            server.update(CONFIG, "mine", notify=False)
            callers.start("late", lambda: client.read_resource(CONFIG, cache_mode="refresh").text)
            gate.wait_reached(2)
        assert callers.wait() == {"early": "colour = blue", "late": "mine"}
        # Of two reads that overlapped, the one that began later stands.
        assert client.read_resource(CONFIG).text == "mine"


def test_two_calls_whose_answers_come_in_reverse_order_each_get_their_own(server: Server, client: Client) -> None:
    server.add("docs://other", "other")
    callers = Callers()
    with server.hold("resources/read", CONFIG) as slow:
        callers.start("slow", lambda: client.read_resource(CONFIG).text)
        slow.wait_reached()
        assert client.read_resource("docs://other").text == "other"
    assert callers.wait() == {"slow": "colour = blue"}


def test_when_the_read_that_many_wait_for_fails_the_next_of_them_leads(server: Server, client: Client) -> None:
    with client.watch(CONFIG) as watch:
        watch.wait_until_current(timeout=10)
        callers = Callers()
        server.inject(faults.JsonRpcError(-32603, "broken", http_status=500), method="resources/read", times=1)
        with server.hold("resources/read", CONFIG) as gate:
            client._reads.changed(client_query())
            callers.start("leader", lambda: client.read_resource(CONFIG))
            gate.wait_reached(1)
            for number in range(3):
                callers.start(str(number), lambda: client.read_resource(CONFIG).text)
        results = callers.wait()
        assert isinstance(results.pop("leader"), ServerError)
        assert set(results.values()) == {"colour = blue"}


def client_query() -> Any:
    from mcp_sync.reads import read_query

    return read_query(CONFIG)


def test_an_old_copy_is_given_only_to_those_who_accept_it_and_not_older_than_they_say(
    server: Server, client: Client
) -> None:
    client.read_resource(CONFIG)
    server.inject(faults.JsonRpcError(-32603, "broken", http_status=500), method="resources/read", times=None)
    with pytest.raises(ServerError, match="broken"):
        client.read_resource(CONFIG)
    copy = client.read_resource(CONFIG, stale_ok=True)
    assert copy.stale and copy.text == "colour = blue"
    with pytest.raises(StaleError, match="max_stale") as caught:
        client.read_resource(CONFIG, stale_ok=True, max_stale=0.0)
    assert caught.value.age is not None and caught.value.age >= 0
    with pytest.raises(ServerError):
        client.read_resource("docs://never/read", stale_ok=True)


@pytest.mark.parametrize(
    "fault, error",
    [
        (faults.Status(401), AuthorizationError),
        (faults.Status(403), AuthorizationError),
        (faults.JsonRpcError(-32602, "Resource not found", http_status=400), ResourceNotFound),
        (faults.JsonRpcError(-32002, "Resource not found", http_status=400), ResourceNotFound),
        (faults.JsonRpcError(-32001, "Resource not found", http_status=200), ResourceNotFound),
        (faults.JsonRpcError(0, "Unknown resource: x", http_status=200), ResourceNotFound),
    ],
)
def test_a_refusal_removes_the_copy_at_once_even_for_those_who_accept_old_ones(
    server: Server, client: Client, fault: Any, error: Any
) -> None:
    client.read_resource(CONFIG)
    server.inject(fault, method="resources/read", times=1)
    with pytest.raises(error):
        client.read_resource(CONFIG, stale_ok=True)
    assert len(client._cache) == 0
    server.inject(faults.Status(500), method="resources/read", times=1)
    with pytest.raises(TransportError):
        client.read_resource(CONFIG, stale_ok=True)


def test_a_read_that_was_answered_before_the_refusal_brings_no_copy_back(server: Server, client: Client) -> None:
    callers = Callers()
    with server.hold("resources/read", CONFIG, at="answer") as gate:
        callers.start("early", lambda: client.read_resource(CONFIG).text)
        gate.wait_reached(1)
        server.inject(faults.Status(403), method="resources/read", times=1)
        gate.release()
        with pytest.raises(AuthorizationError):
            # A gate holds requests from before it was opened only, so this one passes and is refused.
            client.read_resource(CONFIG)
        callers.wait()
    client._cache.check()


def test_input_that_nobody_can_give_is_an_error_that_carries_what_is_asked(server: Server, client: Client) -> None:
    asked = {"name": {"method": "elicitation/create", "params": {"message": "Who?"}}}
    server.inject(
        faults.Result({"resultType": "input_required", "inputRequests": asked, "requestState": "opaque"}),
        method="resources/read",
        times=1,
    )
    with pytest.raises(InputRequired) as caught:
        client.read_resource(CONFIG)
    assert caught.value.input_requests == asked
    assert caught.value.request_state == "opaque"
    assert len(client._cache) == 0


@pytest.mark.parametrize("result", [{"resultType": "surprise"}, {"resultType": 7}, {"contents": "x"}, {"contents": [{}]}, {}])
def test_a_result_that_makes_no_sense_is_refused_and_shown(server: Server, client: Client, result: Any) -> None:
    server.inject(faults.Result(result), method="resources/read", times=1)
    with pytest.raises(ProtocolError):
        client.read_resource(CONFIG)
    assert client.read_resource(CONFIG).text == "colour = blue"


def test_a_call_that_takes_too_long_ends_by_its_own_limit(server: Server, client: Client) -> None:
    with server.hold("resources/read"):
        with pytest.raises(RequestTimeout, match="0.2 s"):
            client.read_resource(CONFIG, timeout=0.2)
    assert client.read_resource(CONFIG).text == "colour = blue"


def test_pages_are_followed_and_a_list_is_complete(server: Server) -> None:
    with Server(page_size=3) as paged:
        for number in range(10):
            paged.add("docs://%d" % number, "x")
            paged.add_template("docs://%d/{part}" % number, "t%d" % number)
        with Client(paged.url) as client:
            assert client.list_resources().uris == tuple("docs://%d" % number for number in range(10))
            assert len(client.list_resource_templates()) == 10
            assert paged.count("resources/list") == 4


def test_a_server_that_speaks_other_revisions_only_is_told_so_with_their_names(server: Server) -> None:
    with Server(protocol_versions=("2031-01-01",)) as future, Client(future.url) as client:
        with pytest.raises(UnsupportedVersion, match="2031-01-01") as caught:
            client.discover()
        assert caught.value.supported == ("2031-01-01",)


def test_a_server_that_refuses_a_revision_that_it_names_is_asked_again_once(server: Server, client: Client) -> None:
    refusal = {"supported": ["2026-07-28"], "requested": "2026-07-28"}
    server.inject(
        faults.JsonRpcError(-32022, "Unsupported protocol version", data=refusal, http_status=400), times=1
    )
    assert client.discover().supported_versions == ("2026-07-28",)
    assert server.count("server/discover") == 2


def test_an_unknown_cache_mode_is_refused_with_the_known_ones(client: Client) -> None:
    with pytest.raises(ValueError, match='"use", "refresh" or "bypass"'):
        client.read_resource(CONFIG, cache_mode="fresh")


def test_a_closed_client_says_so(client: Client) -> None:
    client.close()
    client.close()
    for call in (lambda: client.read_resource(CONFIG), client.list_resources, client.discover, lambda: client.watch(CONFIG)):
        with pytest.raises(ClientClosed):
            call()


def test_a_call_in_progress_ends_when_the_client_is_closed(server: Server, client: Client) -> None:
    callers = Callers()
    with server.hold("resources/read") as gate:
        callers.start("reader", lambda: client.read_resource(CONFIG))
        gate.wait_reached()
        client.close()
        assert isinstance(callers.wait()["reader"], ClientClosed)


def test_eight_threads_read_and_expire_and_change_without_an_error(server: Server) -> None:
    for number in range(20):
        server.add("docs://%d" % number, "x", ttl_ms=1)
    with Client(server.url, max_entries=7) as client:
        errors: List[BaseException] = []

        def work(seed: int) -> None:
            try:
                for step in range(60):
                    client.read_resource("docs://%d" % ((seed * 7 + step) % 20), stale_ok=step % 3 == 0)
                    if step % 5 == 0:
                        client._cache.changed(("", "resources/read", "docs://%d" % (step % 20)))
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        assert errors == []
        client._cache.check()


def test_a_result_knows_from_a_current_catalog_when_it_last_changed(server: Server, client: Client) -> None:
    server.add("docs://dated", "x", last_modified="2026-11-30T12:00:00Z")
    assert client.read_resource("docs://dated").last_modified is None, "no catalog is at hand"
    with client.watch("docs://dated", catalog=True) as watch:
        watch.wait_until_current(timeout=10)
        moment = client.read_resource("docs://dated", cache_mode="refresh").last_modified
        assert moment is not None and moment.isoformat() == "2026-11-30T12:00:00+00:00"
        assert client.read_resource(CONFIG, cache_mode="refresh").last_modified is None


def test_a_server_that_does_not_know_a_method_is_told_apart_with_the_method_it_does_not_know(
    server: Server, client: Client
) -> None:
    server.inject(faults.JsonRpcError(-32601, "Method not found", http_status=404), method="resources/list", times=1)
    with pytest.raises(NotSupported, match="does not know resources/list") as caught:
        client.list_resources()
    assert isinstance(caught.value.__cause__, ServerError)
