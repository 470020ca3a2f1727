"""What ``mcp_sync.contrib.django`` does. Run with each Django in its own environment: see ``test_frameworks.py``."""

import io
import json
import logging
import os
import tempfile
import threading
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List

import django
import pytest
from django.conf import settings

CONFIG = "docs://service/config"
MARKUP = "docs://markup"
BOUND = 20.0


class FakeUsers:
    """A middleware: whoever says so is somebody."""

    def __init__(self, get_response: Any) -> None:
        self._get_response = get_response

    def __call__(self, request: Any) -> Any:
        words = request.META.get("HTTP_X_USER", "").split()
        if "nobody" not in words:
            request.user = User(words)
        return self._get_response(request)


class User:
    def __init__(self, words: "List[str]") -> None:
        self.is_active = "active" in words
        self.is_staff = "staff" in words


def only_mondays(request: Any) -> bool:
    return bool(request.META.get("HTTP_X_DAY") == "monday")


class Credentials:
    def __call__(self, request: Any) -> Any:
        request.headers["Authorization"] = "Bearer of-the-site"
        return request


PATH = __name__
# In a file, since connections to a database in memory are never closed.
FOLDER = tempfile.TemporaryDirectory()
settings.configure(
    ALLOWED_HOSTS=["*"],
    SECRET_KEY="for tests",
    ROOT_URLCONF=PATH,
    USE_TZ=True,
    INSTALLED_APPS=["mcp_sync.contrib.django"],
    MIDDLEWARE=[PATH + ".FakeUsers"],
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.path.join(FOLDER.name, "db")}},
)
django.setup()

from django.core import checks  # noqa: E402
from django.core.management import CommandError, call_command  # noqa: E402
from django.db import connections  # noqa: E402
from django.template import Context, Template  # noqa: E402
from django.test import Client as Browser  # noqa: E402
from django.test.utils import override_settings  # noqa: E402
from django.urls import include, path  # noqa: E402

from mcp_sync import Client, MCPSyncError, TransportError  # noqa: E402
from mcp_sync.contrib.django import views  # noqa: E402
from mcp_sync.contrib.django import clients, resource_changed  # noqa: E402
from mcp_sync.contrib.settings import SettingsError  # noqa: E402
from mcp_sync.testing import Server  # noqa: E402

urlpatterns = [path("mcp/", include("mcp_sync.contrib.django.urls")), path("alive/", views.health)]


@pytest.fixture
def server() -> "Iterator[Server]":
    with Server(ttl_ms=0) as server:
        server.add(CONFIG, "colour = blue")
        server.add(MARKUP, "<b>1 & 2</b>")
        yield server


@contextmanager
def servers(**entries: Any) -> "Iterator[None]":
    with override_settings(MCP_SERVERS=entries):
        yield
    assert not clients._made  # override_settings has closed them at its end


def watched(server: Server, **options: Any) -> "Dict[str, Any]":
    return dict(options, target=server.url, watch=[CONFIG])


def current() -> None:
    watch = clients.watch("default")
    assert watch is not None
    watch.wait_until_current(timeout=BOUND)


# -- the clients -------------------------------------------------------------------------------------------------------


def test_clients_are_made_from_the_settings_at_first_use(server: Server) -> None:
    with servers(default=server.url):
        assert server.count() == 0
        assert clients["default"].read_resource(CONFIG).text == "colour = blue"
        first = clients["default"]
    assert first.closed
    with pytest.raises(SettingsError, match="there is no server 'default'"):
        clients["default"]


def test_credentials_are_found_by_their_dotted_path() -> None:
    def authenticate(headers: Any) -> Any:
        return "site" if headers.get("authorization") == "Bearer of-the-site" else None

    with Server(authenticate=authenticate) as server:
        server.add(CONFIG, "colour = blue")
        with servers(default={"target": server.url, "auth": PATH + ".Credentials"}):
            assert clients["default"].read_resource(CONFIG).text == "colour = blue"
        with servers(default=server.url), pytest.raises(MCPSyncError):
            clients["default"].read_resource(CONFIG)


def test_a_change_is_a_signal_and_leaves_no_database_connection_open(server: Server) -> None:
    told: "List[Dict[str, Any]]" = []
    done = threading.Event()
    opened: "List[Any]" = []

    def broken(**_: Any) -> None:
        raise LookupError("of the receiver")

    def receiver(**kwargs: Any) -> None:
        with connections["default"].cursor() as cursor:
            cursor.execute("SELECT 1")
        opened.append(connections["default"])
        told.append(kwargs)
        done.set()

    seen = _Records()
    resource_changed.connect(broken)
    resource_changed.connect(receiver, sender=Client)
    try:
        # Closing the client waits for the thread that calls the receivers.
        with seen.of("mcp_sync"), seen.of("django.dispatch"), servers(default=watched(server)):
            current()
            server.update(CONFIG, "colour = red")
            assert done.wait(BOUND)
            [kwargs] = told
            assert kwargs["alias"] == "default" and kwargs["client"] is clients["default"]
            assert (kwargs["change"].kind, kwargs["change"].uri) == ("updated", CONFIG)
    finally:
        resource_changed.disconnect(broken)
        resource_changed.disconnect(receiver, sender=Client)
    assert len(seen.records) == 1 and "of the receiver" in str(seen.records[0].exc_info)
    assert opened[0].connection is None


class _Records(logging.Handler):
    """What was logged meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.records: "List[logging.LogRecord]" = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    @contextmanager
    def of(self, name: str) -> "Iterator[None]":
        logger = logging.getLogger(name)
        logger.addHandler(self)
        try:
            yield
        finally:
            logger.removeHandler(self)


# -- system checks -----------------------------------------------------------------------------------------------------


def found() -> "List[Any]":
    return [(message.id, message.level) for message in checks.run_checks(tags=["mcp_sync"])]


def test_without_servers_there_is_a_warning_and_with_none_there_is_not() -> None:
    assert found() == [("mcp_sync.W002", checks.WARNING)]
    with override_settings(MCP_SERVERS={}):
        assert found() == []


def test_the_checks_find_every_mistake_and_say_what_to_do() -> None:
    with servers(
        default=7,
        docs={"target": "https://docs.example.com/mcp", "wotch": [CONFIG], "poll_interval": "10"},
        files={"target": "https://docs.example.com/mcp", "auth": "no.such.thing"},
        plain={"target": "http://docs.example.com/mcp", "auth": PATH + ".Credentials"},
    ):
        assert sorted(found()) == [
            ("mcp_sync.E003", checks.ERROR),
            ("mcp_sync.E004", checks.ERROR),
            ("mcp_sync.E005", checks.ERROR),
            ("mcp_sync.E006", checks.ERROR),
            ("mcp_sync.W001", checks.WARNING),
        ]
        errors = io.StringIO()
        with pytest.raises(Exception, match=r"MCP_SERVERS\['docs'\] has the unknown key 'wotch'") as raised:
            call_command("check", stderr=errors)
        assert "HINT: Did you mean 'watch'" in str(raised.value)


def test_good_settings_pass_and_nothing_is_connected_to(server: Server) -> None:
    with servers(default=watched(server)):
        assert found() == []
        assert server.count() == 0


@pytest.mark.parametrize(
    "options, expected",
    [
        ({"MCP_STATUS_PAGE": True}, []),
        ({"MCP_STATUS_PAGE": True, "MIDDLEWARE": []}, ["mcp_sync.W010"]),
        ({"MCP_STATUS_PAGE": False, "MIDDLEWARE": []}, []),
        ({"MCP_STATUS_PAGE": True, "MIDDLEWARE": [], "MCP_STATUS_GUARD": only_mondays}, []),
        ({"MCP_STATUS_PAGE": "yes"}, ["mcp_sync.E010"]),
        ({"MCP_STATUS_GUARD": PATH + ".only_sundays"}, ["mcp_sync.E011"]),
        ({"MCP_STATUS_GUARD": True}, ["mcp_sync.E011"]),
    ],
)
def test_the_status_page_is_checked_for_its_guard(options: "Dict[str, Any]", expected: "List[str]") -> None:
    if options.get("MIDDLEWARE") is None:
        options = dict(options, MIDDLEWARE=["django.contrib.auth.middleware.AuthenticationMiddleware"])
    with override_settings(MCP_SERVERS={}, **options):
        assert [identity for identity, _ in found()] == expected


# -- views -------------------------------------------------------------------------------------------------------------

STAFF = {"HTTP_X_USER": "active staff"}
PAGES = ["/mcp/", "/mcp/status.json"]


@pytest.mark.parametrize("address", PAGES)
def test_the_status_page_is_off_by_default_even_for_the_staff(address: str, server: Server) -> None:
    with servers(default=server.url):
        assert Browser().get(address, **STAFF).status_code == 404
        with override_settings(MCP_STATUS_PAGE="yes"):
            assert Browser().get(address, **STAFF).status_code == 404


@pytest.mark.parametrize("address", PAGES)
@pytest.mark.parametrize("user", ["", "active", "staff", "nobody"])
def test_the_status_page_is_for_the_staff(address: str, user: str, server: Server) -> None:
    with servers(default=server.url), override_settings(MCP_STATUS_PAGE=True):
        refused = Browser().get(address, HTTP_X_USER=user)
        assert refused.status_code == 403 and b"127.0.0.1" not in refused.content
        assert Browser().get(address, **STAFF).status_code == 200
        assert Browser().post(address, **STAFF).status_code == 405


@pytest.mark.parametrize("guard", [only_mondays, PATH + ".only_mondays"])
def test_the_site_may_have_a_guard_of_its_own(guard: Any, server: Server) -> None:
    with servers(default=server.url), override_settings(MCP_STATUS_PAGE=True, MCP_STATUS_GUARD=guard):
        assert Browser().get("/mcp/", **STAFF).status_code == 403
        assert Browser().get("/mcp/", HTTP_X_DAY="monday").status_code == 200


@pytest.mark.parametrize("guard", [True, PATH + ".only_sundays", "", 0])
def test_a_guard_that_is_none_lets_nobody_in(guard: Any, server: Server) -> None:
    with servers(default=server.url), override_settings(MCP_STATUS_PAGE=True, MCP_STATUS_GUARD=guard):
        with pytest.raises(SettingsError, match="MCP_STATUS_GUARD"):
            Browser().get("/mcp/", **STAFF)


def test_the_page_shows_the_servers_and_the_json_has_the_same(server: Server) -> None:
    with servers(default=watched(server)), override_settings(MCP_STATUS_PAGE=True):
        current()
        shown = Browser().get("/mcp/", **STAFF)
        text = shown.content.decode("utf-8")
        assert "subscriptions/listen" in text and CONFIG in text and 'href="/mcp/status.json"' in text
        assert shown["Content-Type"] == "text/html; charset=utf-8" and shown["Cache-Control"] == "no-store"
        assert shown["Content-Security-Policy"].startswith("default-src 'none'")
        document = json.loads(Browser().get("/mcp/status.json", **STAFF).content.decode("utf-8"))
        assert document["servers"][0]["covered"] == [CONFIG]


@pytest.mark.parametrize("address", ["/mcp/health/", "/alive/"])
def test_the_health_check_is_for_everybody(address: str, server: Server) -> None:
    with servers(default=watched(server)):
        current()
        answer = Browser().get(address)
        assert answer.status_code == 200
        assert json.loads(answer.content.decode("utf-8")) == {"status": "ok", "servers": {"default": "ok"}}
    server.kill()
    with servers(default=watched(server)):
        answer = Browser().get(address)
        assert answer.status_code == 503 and server.url.encode("ascii") not in answer.content


# -- the template tag --------------------------------------------------------------------------------------------------


def rendered(tag: str, **variables: Any) -> str:
    return str(Template("{% load mcp_sync %}" + tag).render(Context(variables)))


def test_the_tag_renders_a_text_escaped(server: Server) -> None:
    with servers(default=server.url):
        assert rendered('{% mcp_resource "docs://service/config" %}') == "colour = blue"
        assert rendered("{% mcp_resource uri %}", uri=MARKUP) == "&lt;b&gt;1 &amp; 2&lt;/b&gt;"
        assert rendered('{% mcp_resource "docs://markup" as x %}[{{ x|length }}, {{ x }}]') == (
            "[12, &lt;b&gt;1 &amp; 2&lt;/b&gt;]"
        )


def test_the_tag_asks_the_server_that_it_names(server: Server) -> None:
    with Server() as other, servers(default=server.url, other=other.url):
        other.add(CONFIG, "colour = green")
        assert rendered('{% mcp_resource "docs://service/config" server="other" %}') == "colour = green"


def test_the_tag_renders_the_last_good_copy_while_the_server_is_away(server: Server) -> None:
    with servers(default=server.url):
        assert rendered('{% mcp_resource "docs://service/config" %}') == "colour = blue"
        server.kill()
        assert rendered('{% mcp_resource "docs://service/config" timeout=5 %}') == "colour = blue"


def test_the_tag_has_a_default_for_what_was_never_read_and_without_one_it_is_an_error(server: Server) -> None:
    server.kill()
    with servers(default=server.url):
        assert rendered('{% mcp_resource "docs://service/config" default=none %}', none="<none>") == "&lt;none&gt;"
        assert rendered('{% mcp_resource "docs://service/config" default="" %}') == ""
        with pytest.raises(TransportError):
            rendered('{% mcp_resource "docs://service/config" %}')


# -- commands ----------------------------------------------------------------------------------------------------------


def output(*arguments: str, **options: Any) -> str:
    stream = io.StringIO()
    call_command(*arguments, stdout=stream, **options)
    return stream.getvalue()


def test_mcp_read_prints_what_a_resource_holds(server: Server, capfdbinary: Any) -> None:
    server.add("docs://logo", b"\x89PNG\n")
    with servers(default=server.url, other=server.url):
        assert output("mcp_read", CONFIG) == "colour = blue\n"
        assert output("mcp_read", CONFIG, "--server", "other") == "colour = blue\n"
        call_command("mcp_read", "docs://logo")
        assert capfdbinary.readouterr().out == b"\x89PNG\n"


def test_mcp_read_tells_what_went_wrong_in_one_line(server: Server) -> None:
    with servers(default=server.url):
        with pytest.raises(CommandError, match="docs://none"):
            output("mcp_read", "docs://none")
        with pytest.raises(CommandError, match="there is no server 'docs' in MCP_SERVERS; there are: 'default'"):
            output("mcp_read", CONFIG, "--server", "docs")


def test_mcp_watch_prints_a_line_for_each_resource_and_each_change(server: Server) -> None:
    with servers(default=watched(server)):
        lines = _Lines(lambda line: "current" in line and server.update(CONFIG, "colour = red"))
        call_command("mcp_watch", "--count", "1", stdout=lines)
        assert [line.split("\t")[1:3] for line in lines.lines] == [["current", CONFIG], ["updated", CONFIG]]
    with servers(default=server.url):
        with pytest.raises(CommandError, match="nothing to watch"):
            call_command("mcp_watch")
        assert output("mcp_watch", MARKUP, "--count", "0").split("\t")[1:3] == ["current", MARKUP]


class _Lines(io.StringIO):
    """Calls a function with each line that is written."""

    def __init__(self, told: Any) -> None:
        super().__init__()
        self.lines: "List[str]" = []
        self._told = told

    def write(self, text: str) -> int:
        for line in text.splitlines():
            self.lines.append(line)
            self._told(line)
        return len(text)


def test_mcp_status_prints_how_the_servers_do(server: Server) -> None:
    with servers(default=watched(server)):
        assert output("mcp_status").startswith("default: ok; %s; modern (2026-07-28)" % server.url)
        assert json.loads(output("mcp_status", "--json"))["status"] == "ok"
    server.kill()
    with servers(default=watched(server)):
        with pytest.raises(SystemExit) as ended:
            output("mcp_status", "--wait", "0.1")
        assert ended.value.code == 1


def test_importing_the_app_has_started_nothing() -> None:
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("mcp_sync-")]
