"""What is sent with every request: the protocol's headers, credentials, through which proxy; and what is refused."""

import base64
import datetime
import email.utils
import hashlib
import itertools
import os
import re
import threading
from typing import Any, Dict, Iterator, List, Optional

import pytest
import requests.auth
from certificates import certificate, server_context
from posting import ERA, IDS, URI, calling, messages, reading, result, result_from, transport
from rawserver import Outcome, Peer, RawServer, Request, head, json_answer

from mcp_sync import Client
from mcp_sync._deadline import Deadline
from mcp_sync.errors import AuthorizationError, MCPSyncError, TransportError
from mcp_sync.testing import Server
from mcp_sync.transports._headers import body_length, media_type, retry_after_seconds
from mcp_sync.transports.streamable_http import HTTPOptions

TEXTS = {"contents": [{"uri": URI, "text": "x"}]}


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: Any, tmp_path: Any) -> None:
    """Nothing of this machine's own settings reaches a test."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NETRC"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


def answering(peer: Peer) -> None:
    while True:
        peer.send(json_answer(peer.request().answer(TEXTS)))


@pytest.fixture
def server() -> "Iterator[RawServer]":
    """A server that answers whatever it is asked."""
    with RawServer(answering) as server:
        yield server


def sent(server: RawServer, outgoing: Any = None, **options: Any) -> Request:
    """The request as it arrived."""
    result_from(server.url, outgoing, **options)
    return server.requests[-1]


# -- the protocol's own ------------------------------------------------------------------------------------------------


def test_a_request_is_one_post_with_the_protocol_s_headers(server: RawServer) -> None:
    request = sent(server, reading("docs://h/世界"))
    assert request.line == "POST /mcp HTTP/1.1"
    assert request.header("Content-Type") == "application/json"
    assert request.header("Accept") == "application/json, text/event-stream"
    assert request.header("MCP-Protocol-Version") == "2026-07-28"
    assert request.header("Mcp-Method") == "resources/read"
    assert request.header("Mcp-Name") == "=?base64?ZG9jczovL2gv5LiW55WM?="
    assert (request.header("User-Agent") or "").startswith("mcp_sync/")
    assert request.message["params"]["uri"] == "docs://h/世界"
    assert int(request.header("Content-Length") or "") == len(request.body)
    assert all(len(values) == 1 for values in request.headers.values())


@pytest.mark.parametrize(
    "uri",
    [
        "docs://h/世界",
        "docs://h/a b",
        " leading",
        "trailing ",
        "\ttab",
        "a\r\nX-Evil: 1",
        "a\nb",
        "=?base64?x?=",
        "=?base64??=",
        "users/me",
        "urn:x",
        "HTTP://EXAMPLE.com:80/%7e/../",
        "docs://h/é",
        "docs://h/\u2028\u0085",
        "docs://h/\x7f\x01",
        "x" * 5000,
    ],
)
def test_any_uri_reaches_the_server_untouched(uri: str) -> None:
    # The embedded server compares header and body as the protocol says, and refuses what does not match.
    with Server() as server:
        server.add(uri, "found")
        with Client(server.url) as client:
            assert client.read_resource(uri).text == "found"
        assert server.requests[-1].params["uri"] == uri
        assert "X-Evil" not in server.requests[-1].headers


def test_a_server_that_finds_the_headers_wrong_is_believed() -> None:
    with Server() as server:
        door = transport(server.url)
        outgoing = ERA.request(IDS.next(), "resources/read", {"uri": URI})
        outgoing = outgoing.but(headers=dict(outgoing.headers, **{"Mcp-Name": "another"}))
        [refused] = messages(door, outgoing)
        door.close()
    assert refused.error["code"] == -32020


@pytest.mark.parametrize("path", ["", "/", "/a/b", "/a?x=1&y=%20", "/a%2Fb", "/a b", "/世", "/?"])
def test_the_address_is_asked_as_it_is(path: str) -> None:
    with RawServer(answering) as server:
        origin = server.url[: -len("/mcp")]
        result_from(origin + path)
        target = server.requests[-1].line.split(" ")[1]
    expected = {"": "/", "/a b": "/a%20b", "/世": "/%E4%B8%96", "/?": "/?"}.get(path, path)
    assert target in (expected, expected.rstrip("?"))


# -- a user's headers --------------------------------------------------------------------------------------------------


def test_a_user_s_headers_are_sent_with_every_request(server: RawServer) -> None:
    headers = {"Authorization": "Bearer t", "X-Tenant": "7", "user-agent": "mine", "X-Empty": ""}
    door = transport(server.url, headers=headers)
    for _ in range(2):
        result(door)
        request = server.requests[-1]
        assert [request.header(name) for name in headers] == ["Bearer t", "7", "mine", ""]
        assert all(len(values) == 1 for values in request.headers.values())
    door.close()


def test_what_a_configuration_repeats_of_the_protocol_s_headers_does_no_harm(server: RawServer) -> None:
    request = sent(server, headers={"content-type": "text/plain", "ACCEPT": "*/*", "accept-encoding": "gzip"})
    assert request.headers["content-type"] == ["application/json"]
    assert request.headers["accept"] == ["application/json, text/event-stream"]
    assert request.headers["accept-encoding"] == ["identity"]


@pytest.mark.parametrize(
    "headers",
    [
        {"X": "a\r\nY: b"},
        {"X": "a\nb"},
        {"X": "blå"},
        {"X": " leading"},
        {"X": "trailing "},
        {"X": "\x00"},
        {"X\r\nY": "a"},
        {"X Y": "a"},
        {"X:": "a"},
        {"": "a"},
        {"Ü": "a"},
        {"X": b"bytes"},
        {"X": 7},
        {"X": None},
        {b"X": "a"},
        {7: "a"},
        {"Mcp-Method": "x"},
        {"mcp-name": "x"},
        {"MCP-PROTOCOL-VERSION": "2025-06-18"},
        {"Content-Length": "1"},
        {"Transfer-Encoding": "chunked"},
    ],
)
def test_a_header_that_cannot_be_sent_is_refused_at_once(headers: Any) -> None:
    with pytest.raises(ValueError, match="the header "):
        HTTPOptions("http://h/", headers=headers)
    with pytest.raises(ValueError, match="the header "):
        HTTPOptions("http://h/").for_principal(None, headers)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "example.com/mcp",
        "//example.com",
        "ftp://example.com",
        "file:///x",
        "http://",
        "http:///x",
        "http://:80/",
        "http://[::1/",
        "http://h:99999/",
        "http://h:port/",
        "http://h:-1/",
        "http://a b/",
        "http://*.example.com/",
        "http://.example.com/",
        "javascript:alert(1)",
    ],
)
def test_an_address_that_is_none_is_refused_at_once(url: str) -> None:
    with pytest.raises(ValueError, match="is not the URL of an MCP server"):
        HTTPOptions(url)


def test_an_ipv6_address_and_an_international_name_are_addresses() -> None:
    assert HTTPOptions("http://[::1]:8000/mcp").url == "http://[::1]:8000/mcp"
    assert HTTPOptions("HTTPS://müller.example/mcp").url == "HTTPS://müller.example/mcp"


# -- credentials -------------------------------------------------------------------------------------------------------


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(("%s:%s" % (user, password)).encode("utf-8")).decode("ascii")


@pytest.mark.parametrize("user, password", [("u", "p"), ("", ""), ("u", "a:b"), ("blå", "世界"), ("é", "\u20ac")])
def test_a_user_and_a_password_are_sent_as_utf_8(server: RawServer, user: str, password: str) -> None:
    assert sent(server, auth=(user, password)).headers["authorization"] == [basic(user, password)]


def test_credentials_given_as_auth_replace_those_of_the_headers(server: RawServer) -> None:
    request = sent(server, auth=("u", "p"), headers={"authorization": "Bearer t"})
    assert request.headers["authorization"] == [basic("u", "p")]


@pytest.mark.parametrize("auth", ["token", b"token", ["u", "p"], ("u",), ("u", "p", "x"), ("u", b"p"), ("u", None), 7])
def test_credentials_of_another_form_are_refused_and_not_shown(auth: Any) -> None:
    with pytest.raises(TypeError) as caught:
        HTTPOptions("http://h/", auth=auth)
    assert "auth= takes (user, password) or a callable" in str(caught.value)
    assert "token" not in str(caught.value).replace("for a token give", "")


def test_a_user_in_the_address_is_used_and_in_no_message(server: RawServer) -> None:
    url = server.url.replace("http://", "http://me:s%40cret@")
    door = transport(url)
    result(door)
    assert server.requests[-1].headers["authorization"] == [basic("me", "s@cret")]
    assert door.where == server.url
    door.close()
    server.close()
    with pytest.raises(TransportError) as caught:
        result_from(url, timeout=20)
    assert "cret" not in str(caught.value) and "me:" not in str(caught.value)


def test_credentials_that_are_given_come_before_those_in_the_address(server: RawServer) -> None:
    url = server.url.replace("http://", "http://me:secret@")
    result_from(url, headers={"Authorization": "Bearer t"})
    assert server.requests[-1].headers["authorization"] == ["Bearer t"]
    result_from(url, auth=("u", "p"))
    assert server.requests[-1].headers["authorization"] == [basic("u", "p")]


class Renewed(requests.auth.AuthBase):
    """Another token for every request."""

    def __init__(self) -> None:
        self.asked: "List[Any]" = []

    def __call__(self, request: Any) -> Any:
        self.asked.append((request.url, request.body, request.headers["Mcp-Method"]))
        request.headers["Authorization"] = "Bearer %d" % len(self.asked)
        return request


def test_a_callable_is_asked_for_every_request_and_sees_all_of_it(server: RawServer) -> None:
    auth = Renewed()
    door = transport(server.url, auth=auth)
    for number in (1, 2, 3):
        result(door)
        request = server.requests[-1]
        assert request.headers["authorization"] == ["Bearer %d" % number]
        assert auth.asked[-1] == (server.url, request.body, "resources/read")
        assert all(len(values) == 1 for values in request.headers.values())
    assert server.connections == 1
    door.close()


def test_a_callable_that_fails_is_named_and_nothing_was_sent(server: RawServer) -> None:
    def auth(request: Any) -> Any:
        raise KeyError("no token")

    with pytest.raises(TransportError, match="the callable given as auth= failed: KeyError: 'no token'") as caught:
        result_from(server.url, calling(), auth=auth)
    assert not caught.value.may_have_run and str(caught.value).endswith("; the request was not executed")
    assert isinstance(caught.value.__cause__, KeyError)
    assert server.requests == []


def test_a_callable_s_own_error_of_this_package_passes() -> None:
    def auth(request: Any) -> Any:
        raise AuthorizationError("log in first")

    with pytest.raises(AuthorizationError, match="log in first"):
        result_from("http://127.0.0.1:9/", auth=auth)


def test_a_callable_may_itself_ask_a_server_of_this_kind(server: RawServer) -> None:
    # A token from one server for another, over the same machinery and in the same thread.
    with RawServer(answering) as other:
        tokens = transport(other.url)

        def auth(request: Any) -> Any:
            request.headers["Authorization"] = "Bearer " + result(tokens)["contents"][0]["text"]
            return request

        assert sent(server, auth=auth).headers["authorization"] == ["Bearer x"]
        tokens.close()


class DigestServer:
    """Knows one user, and lets in whoever proves to know the password without saying it (RFC 7616, MD5)."""

    def __init__(self, user: str, password: str) -> None:
        self._lock = threading.Lock()
        self._nonces = 0
        self.user = user
        self.password = password
        self.challenge_body = b"log in"

    def __call__(self, peer: Peer) -> None:
        while True:
            request = peer.request()
            given = request.header("Authorization")
            if given is not None and self._proves(given, request.line):
                peer.send(json_answer(request.answer(TEXTS)))
                continue
            with self._lock:
                self._nonces += 1
                challenge = 'Digest realm="r", qop="auth", nonce="n%d"' % self._nonces
            length = "Content-Length: %d" % len(self.challenge_body)
            peer.send(head("WWW-Authenticate: " + challenge, length, status="401 No") + self.challenge_body)

    def _proves(self, given: str, line: str) -> bool:
        fields: "Dict[str, str]" = dict(re.findall(r'(\w+)="?([^",]*)"?', given))

        def digest(*parts: str) -> str:
            return hashlib.md5(":".join(parts).encode("utf-8")).hexdigest()

        method, target, _ = line.split(" ")
        secret = digest(self.user, "r", self.password)
        proof = digest(
            secret, fields["nonce"], fields["nc"], fields["cnonce"], fields["qop"], digest(method, target)
        )
        return (fields["username"], fields["uri"], fields["response"]) == (self.user, target, proof)


def test_digest_proves_the_password_once_and_then_without_being_asked() -> None:
    with RawServer(DigestServer("u", "p")) as server:
        door = transport(server.url, auth=requests.auth.HTTPDigestAuth("u", "p"))
        for _ in range(20):
            assert result(door)["contents"][0]["text"] == "x"
        # One challenge; and the first request was sent once more with the proof, body and all.
        assert len(server.requests) == 21
        assert server.requests[0].body == server.requests[1].body != b""
        assert server.connections == 1
        door.close()


def test_digest_with_a_wrong_password_is_refused() -> None:
    with RawServer(DigestServer("u", "p")) as server:
        door = transport(server.url, auth=requests.auth.HTTPDigestAuth("u", "wrong"))
        for _ in range(3):
            with pytest.raises(AuthorizationError) as caught:
                result(door)
            assert caught.value.status == 401 and "Digest" in (caught.value.challenge or "")
        door.close()


def test_digest_in_several_threads_at_once() -> None:
    with RawServer(DigestServer("u", "p")) as server:
        door = transport(server.url, auth=requests.auth.HTTPDigestAuth("u", "p"))
        calls = [Outcome(lambda: [result(door) for _ in range(5)]) for _ in range(4)]
        assert all(len(call.value()) == 5 for call in calls)
        door.close()


def test_the_words_with_which_digest_is_asked_for_are_bounded() -> None:
    digest = DigestServer("u", "p")
    digest.challenge_body = b"x" * 1000000
    with RawServer(digest) as server:
        with pytest.raises(MCPSyncError, match="refuses the request with more words than are read"):
            result_from(server.url, auth=requests.auth.HTTPDigestAuth("u", "p"))


@pytest.mark.parametrize("where", ["home", "NETRC"])
@pytest.mark.parametrize(
    "options, expected",
    [
        ({"headers": {"Authorization": "Bearer t"}}, "Bearer t"),
        ({"auth": ("u", "p")}, basic("u", "p")),
        ({"auth": Renewed()}, "Bearer 1"),
        ({}, None),
    ],
    ids=["header", "pair", "callable", "none"],
)
def test_a_netrc_file_replaces_no_credentials(
    server: RawServer, monkeypatch: Any, tmp_path: Any, where: str, options: Any, expected: "Optional[str]"
) -> None:
    file = tmp_path / (".netrc" if where == "home" else "other")
    file.write_text("machine 127.0.0.1 login evil password evil\ndefault login evil password evil\n")
    file.chmod(0o600)
    if where == "NETRC":
        monkeypatch.setenv("NETRC", str(file))
    if isinstance(options.get("auth"), Renewed):
        options = {"auth": Renewed()}
    assert sent(server, **options).header("Authorization") == expected


def test_cookies_are_not_kept() -> None:
    def script(peer: Peer) -> None:
        for number in itertools.count():
            peer.send(json_answer(peer.request().answer(TEXTS), "Set-Cookie: c%d=1; Path=/" % number))

    for auth in (None, Renewed()):
        with RawServer(script) as server:
            door = transport(server.url, auth=auth)
            for _ in range(3):
                result(door)
                assert server.requests[-1].header("Cookie") is None
            assert door._pool is not None and not (door._pool._session and door._pool._session.cookies)
            door.close()


# -- principals --------------------------------------------------------------------------------------------------------


def test_another_principal_s_requests_carry_only_its_own_credentials(server: RawServer) -> None:
    url = server.url.replace("http://", "http://me:secret@")
    door = transport(url, headers={"X-Tenant": "7", "authorization": "Bearer mine"})
    other = door.with_auth(None, {"Authorization": "Bearer other"})
    third = door.with_auth(("u", "p"), None)
    seen = []
    for who in (door, other, third, door):
        result(who)
        seen.append((server.requests[-1].headers["authorization"], server.requests[-1].header("X-Tenant")))
    assert seen == [
        (["Bearer mine"], "7"),
        (["Bearer other"], "7"),
        ([basic("u", "p")], "7"),
        (["Bearer mine"], "7"),
    ]
    # All over one connection, which outlives each principal but the first.
    assert server.connections == 1
    other.close()
    result(third)
    assert server.connections == 1
    with pytest.raises(TransportError, match="is closed"):
        result(other)
    door.close()
    with pytest.raises(TransportError, match="is closed"):
        result(third)
    third.close()


def test_the_address_s_own_user_is_not_another_principal_s(server: RawServer) -> None:
    door = transport(server.url.replace("http://", "http://me:secret@"))
    other = door.with_auth(None, {"X-User": "other"})
    result(other)
    assert server.requests[-1].header("Authorization") is None
    other.close()
    door.close()


# -- proxies -----------------------------------------------------------------------------------------------------------


def proxying(peer: Peer) -> None:
    """A proxy that has every answer itself."""
    while True:
        peer.send(json_answer(peer.request().answer({"contents": [{"uri": URI, "text": "by proxy"}]})))


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
@pytest.mark.parametrize("auth", [None, ("u", "p"), Renewed()], ids=["none", "pair", "callable"])
def test_a_proxy_of_the_environment_is_used(monkeypatch: Any, name: str, auth: Any) -> None:
    with RawServer(proxying) as proxy:
        if name == "HTTP_PROXY":
            monkeypatch.setenv("REQUEST_METHOD", "")
            monkeypatch.delenv("REQUEST_METHOD")
        monkeypatch.setenv(name, "http://pu:pp@127.0.0.1:%d" % proxy.port)
        answer = result_from("http://docs.invalid:8000/mcp?x=1", auth=auth)
        assert answer["contents"][0]["text"] == "by proxy"
        [request] = proxy.requests
    assert request.line == "POST http://docs.invalid:8000/mcp?x=1 HTTP/1.1"
    assert request.headers["host"] == ["docs.invalid:8000"]
    assert request.headers["proxy-authorization"] == [basic("pu", "pp")]


@pytest.mark.parametrize("exception", ["127.0.0.1", "*", "127.0.0.0/8"])
def test_an_exception_from_the_proxy_is_honoured(server: RawServer, monkeypatch: Any, exception: str) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", exception)
    assert sent(server).line == "POST /mcp HTTP/1.1"


def test_given_proxies_come_before_those_of_the_environment(server: RawServer, monkeypatch: Any) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert sent(server, proxies={}).line == "POST /mcp HTTP/1.1"
    with RawServer(proxying) as proxy:
        result_from("http://docs.invalid/mcp", proxies={"http": "http://127.0.0.1:%d" % proxy.port})
        assert proxy.requests[0].line.startswith("POST http://docs.invalid/mcp ")


def test_tls_goes_through_a_tunnel_of_the_proxy(monkeypatch: Any) -> None:
    def script(peer: Peer) -> None:
        request = peer.request()
        assert request.line.startswith("CONNECT localhost:4430 HTTP/1")
        peer.send(b"HTTP/1.1 200 Connected\r\n\r\n")
        peer.start_tls(server_context())
        answering(peer)

    with RawServer(script) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", "http://pu:pp@127.0.0.1:%d" % proxy.port)
        door = transport("https://localhost:4430/mcp", verify=certificate()[0], headers={"Authorization": "Bearer t"})
        for _ in range(2):
            result(door)
        door.close()
        assert (proxy.connections, len(proxy.requests)) == (1, 3)
        tunnel, request = proxy.requests[:2]
    # Each of the two sees only the credentials that are for it.
    assert (tunnel.header("Proxy-Authorization"), tunnel.header("Authorization")) == (basic("pu", "pp"), None)
    assert (request.header("Proxy-Authorization"), request.header("Authorization")) == (None, "Bearer t")


@pytest.mark.parametrize("status", ["407 Proxy Authentication Required", "502 Bad Gateway", "403 Forbidden"])
def test_a_proxy_that_opens_no_tunnel_is_told_and_nothing_was_sent(status: str) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(head("Content-Length: 0", status=status))

    with RawServer(script) as proxy:
        proxies = {"https": "http://127.0.0.1:%d" % proxy.port}
        with pytest.raises(TransportError, match="cannot be reached: Tunnel connection failed: %s" % status) as caught:
            result_from("https://localhost:4430/mcp", calling(), proxies=proxies)
    assert not caught.value.may_have_run


# -- certificates ------------------------------------------------------------------------------------------------------


@pytest.fixture
def tls_server() -> "Iterator[RawServer]":
    with RawServer(answering, tls=server_context()) as server:
        yield server


def test_a_certificate_that_nobody_vouches_for_is_refused_and_nothing_was_sent(tls_server: RawServer) -> None:
    with pytest.raises(TransportError, match=r"cannot be reached: .*certificate.*\(verify=\)") as caught:
        result_from(tls_server.url, calling())
    assert not caught.value.may_have_run
    assert tls_server.requests == []


def test_certificates_are_those_that_are_given(tls_server: RawServer, monkeypatch: Any, tmp_path: Any) -> None:
    cert = certificate()[0]
    other = tmp_path / "empty.pem"
    other.write_text("")
    assert sent(tls_server, verify=cert).line == "POST /mcp HTTP/1.1"
    # Of the environment, if nothing is given; it does not replace what is.
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", cert)
    assert sent(tls_server).line == "POST /mcp HTTP/1.1"
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")
    monkeypatch.setenv("CURL_CA_BUNDLE", cert)
    assert sent(tls_server).line == "POST /mcp HTTP/1.1"
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "missing.pem"))
    assert sent(tls_server, verify=cert).line == "POST /mcp HTTP/1.1"
    assert sent(tls_server, verify=cert, auth=Renewed()).line == "POST /mcp HTTP/1.1"


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
def test_not_verifying_is_not_changed_by_the_environment(tls_server: RawServer, monkeypatch: Any) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/missing.pem")
    for auth in (None, Renewed()):
        assert sent(tls_server, verify=False, auth=auth).line == "POST /mcp HTTP/1.1"


def test_a_certificate_for_another_name_is_refused(tls_server: RawServer) -> None:
    # 127.0.0.2 is this machine as well, and not in the certificate.
    url = tls_server.url.replace("127.0.0.1", "127.0.0.2")
    with RawServer(answering, tls=server_context()) as server:
        del server
        with pytest.raises(TransportError, match="cannot be reached") as caught:
            result_from(url, verify=certificate()[0])
    assert not caught.value.may_have_run


@pytest.mark.parametrize("options", [{"verify": "/missing.pem"}, {"cert": "/missing.pem"}, {"cert": ("/a", "/b")}])
@pytest.mark.parametrize("auth", [None, Renewed()], ids=["none", "callable"])
def test_a_missing_file_of_certificates_is_told(tls_server: RawServer, options: Any, auth: Any) -> None:
    with pytest.raises(TransportError, match="cannot be reached: ") as caught:
        result_from(tls_server.url, auth=auth, **options)
    assert not caught.value.may_have_run


# -- what headers of an answer mean ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value, seconds",
    [
        ("0", 0.0),
        ("7", 7.0),
        (" 7 ", 7.0),
        ("007", 7.0),
        ("1.5", 1.5),
        ("3600", 3600.0),
        ("86400", 3600.0),
        ("9" * 5000, 3600.0),
        (None, None),
        ("", None),
        ("-1", None),
        ("+1", None),
        ("1e3", None),
        ("²", None),
        ("٣", None),
        ("soon", None),
        ("nan", None),
        ("7, 7", None),
        ("Mon, 99 Foo 2025 00:00:00 GMT", None),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Wed, 21 Oct 2015 07:28:00", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 3600.0),
        ("Wednesday, 21-Oct-15 07:28:00 GMT", 0.0),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_wish_to_wait_is_read(value: "Optional[str]", seconds: "Optional[float]") -> None:
    assert retry_after_seconds(value) == seconds


def test_a_wish_to_wait_until_a_moment_counts_from_now() -> None:
    moment = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=10)
    told = retry_after_seconds(email.utils.format_datetime(moment, usegmt=True))
    assert told is not None and 500.0 < told <= 600.0


@pytest.mark.parametrize("status", ["429 Too Many", "503 Away", "401 No"])
def test_a_wish_to_wait_comes_with_the_error(status: str) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(head("Retry-After: 7", "Content-Length: 0", status=status))

    with RawServer(script) as server:
        with pytest.raises(TransportError) as caught:
            result_from(server.url)
    assert caught.value.retry_after == 7.0


def test_a_wish_to_wait_comes_with_a_json_rpc_error_as_well() -> None:
    def script(peer: Peer) -> None:
        body = b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32603,"message":"busy"}}' % peer.request().id
        peer.send(json_answer(body, "Retry-After: 7", status="503 Away"))

    with RawServer(script) as server:
        door = transport(server.url)
        with door.exchange(reading(), Deadline(20.0)) as exchange:
            assert (exchange.status, exchange.retry_after) == (503, 7.0)
        door.close()


@pytest.mark.parametrize(
    "value, kind",
    [
        (None, ""),
        ("", ""),
        ("text/html", "text/html"),
        ('Text/Event-Stream ; charset="UTF-8"', "text/event-stream"),
        (";", ""),
        (" application/json;x", "application/json"),
    ],
)
def test_a_media_type_is_read_without_its_parameters(value: "Optional[str]", kind: str) -> None:
    assert media_type(value) == kind


def test_a_length_is_a_number_or_none() -> None:
    assert [body_length(value) for value in (None, "0", " 17 ", "9" * 18)] == [None, 0, 17, 10**18 - 1]
    for value in ("", "-1", "²", "1,1", "9" * 19):
        with pytest.raises(ValueError):
            body_length(value)
