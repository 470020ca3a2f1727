"""Whose copies are whose."""

import base64
from typing import Any, Iterator, Mapping, Optional

import pytest

from mcp_sync import AuthorizationError, Client
from mcp_sync.testing import Server

DOC = "docs://mine"
TOKENS = {"Bearer alice-1": "alice", "Bearer alice-2": "alice", "Bearer bob-1": "bob"}


def who(headers: Mapping[str, str]) -> Optional[str]:
    sent = {name.lower(): value for name, value in headers.items()}.get("authorization", "")
    if sent.startswith("Basic "):
        return base64.b64decode(sent[6:]).decode().split(":")[0]
    return TOKENS.get(sent)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(authenticate=who) as server:
        server.add(DOC, lambda principal: "the secret of %s" % principal, ttl_ms=60000)
        server.add("docs://all", "for all", ttl_ms=60000, cache_scope="public")
        yield server


def client_of(server: Server, **options: Any) -> Client:
    return Client(server.url, headers={"Authorization": "Bearer alice-1"}, principal="alice", **options)


def bob(client: Client) -> Client:
    return client.as_principal("bob", headers={"Authorization": "Bearer bob-1"})


def test_neither_of_two_principals_sees_the_others_private_copy(server: Server) -> None:
    with client_of(server) as client:
        other = bob(client)
        for _ in range(2):
            assert client.read_resource(DOC).text == "the secret of alice"
            assert other.read_resource(DOC).text == "the secret of bob"
        assert server.count("resources/read", uri=DOC) == 2


def test_the_connections_are_shared(server: Server) -> None:
    with client_of(server) as client:
        client.read_resource(DOC)
        bob(client).read_resource(DOC)
        assert server.connections == 1


def test_public_results_are_shared_only_if_the_owner_of_the_client_says_so(server: Server) -> None:
    with client_of(server) as client:
        client.read_resource("docs://all")
        bob(client).read_resource("docs://all")
        assert server.count("resources/read", uri="docs://all") == 2
    with client_of(server, share_public=True) as client:
        held = client.read_resource("docs://all")
        assert bob(client).read_resource("docs://all") is held
        assert server.count("resources/read", uri="docs://all") == 3
        assert bob(client).read_resource(DOC).text == "the secret of bob"


def test_a_renewed_token_of_the_same_principal_keeps_its_copies(server: Server) -> None:
    with client_of(server) as client:
        held = client.read_resource(DOC)
        renewed = client.as_principal("alice", headers={"Authorization": "Bearer alice-2"})
        assert renewed.read_resource(DOC) is held


def test_a_principal_who_may_not_see_it_any_more_loses_the_copy_and_others_keep_theirs(server: Server) -> None:
    with client_of(server) as client:
        other = bob(client)
        held = client.read_resource(DOC)
        other.read_resource(DOC)
        server.restrict(DOC, {"alice"})
        with pytest.raises(AuthorizationError):
            other.read_resource(DOC, cache_mode="refresh", stale_ok=True)
        with pytest.raises(AuthorizationError):
            other.read_resource(DOC, stale_ok=True)
        assert client.read_resource(DOC) is held


def test_a_notice_to_one_principal_makes_the_shared_copy_stale_for_all(server: Server) -> None:
    with client_of(server, share_public=True, throttle=0.01) as client:
        other = bob(client)
        with client.watch("docs://all") as watch:
            watch.wait_until_current(timeout=10)
            assert other.read_resource("docs://all").text == "for all"
            server.update("docs://all", "for everybody")
            for _ in watch.changes(timeout=10):
                break
            assert client.read_resource("docs://all").text == "for everybody"
            assert other.read_resource("docs://all").text == "for everybody"


def test_credentials_may_be_a_pair_or_a_callable_that_is_asked_for_every_request(server: Server) -> None:
    calls = []

    def token(request: Any) -> Any:
        calls.append(1)
        request.headers["Authorization"] = "Bearer alice-%d" % len(calls)
        return request

    with Client(server.url, auth=token) as client:
        assert client.read_resource(DOC, cache_mode="bypass").text == "the secret of alice"
        assert client.read_resource(DOC, cache_mode="bypass").text == "the secret of alice"
        assert len(calls) == 2
    with Client(server.url, auth=("carol", "secret")) as client:
        assert client.read_resource(DOC).text == "the secret of carol"


def test_closing_the_first_client_closes_those_made_from_it(server: Server) -> None:
    client = client_of(server)
    other = bob(client)
    client.close()
    assert other.closed


def test_a_principal_without_credentials_is_refused(server: Server) -> None:
    with client_of(server) as client:
        with pytest.raises(ValueError, match="credentials"):
            client.as_principal("bob")


def test_what_the_server_gave_a_lifetime_for_outlives_the_client_that_read_it(server: Server) -> None:
    with client_of(server) as client:
        with bob(client) as first:
            held = first.read_resource(DOC)
        assert bob(client).read_resource(DOC) is held


def test_what_only_a_stream_kept_current_does_not_outlive_the_stream(server: Server) -> None:
    server.add("docs://unhinted", "x", ttl_ms=0)
    with client_of(server) as client:
        with bob(client) as first, first.watch("docs://unhinted") as watch:
            watch.wait_until_current(timeout=10)
            held = first.read_resource("docs://unhinted")
        assert bob(client).read_resource("docs://unhinted") is not held


def test_a_client_that_nobody_holds_any_more_is_closed_with_the_first_if_it_watches(server: Server) -> None:
    with client_of(server) as client:
        bob(client).watch(DOC).wait_until_current(timeout=10)
        assert server.streams == 1
    server.wait_for_no_streams(timeout=10)
