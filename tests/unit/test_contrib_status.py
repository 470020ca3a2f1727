"""How clients are doing: as data, as a page behind its guard, as a health check, as lines."""

import contextlib
import html.parser
import json
import os
import re
import threading
from typing import Any, Dict, Iterator, List

import pytest
from rawserver import BOUND

from mcp_sync import Client, ServerError, State, Status
from mcp_sync.contrib import telling
from mcp_sync.contrib.clients import Clients
from mcp_sync.contrib.page import MOST_ROWS, page
from mcp_sync.contrib.report import DEGRADED, FAILING, OK, Report, ResourceReport, ServerReport, report
from mcp_sync.contrib.serving import StatusPage, health
from mcp_sync.testing import Server, StdioServer, faults

CONFIG = "docs://service/config"
GONE = "docs://gone"


@pytest.fixture
def server() -> "Iterator[Server]":
    with Server(ttl_ms=0, capabilities=["prompts"]) as server:
        server.add(CONFIG, "colour = blue")
        yield server


@contextlib.contextmanager
def clients_of(**entries: Any) -> "Iterator[Clients]":
    clients = Clients(lambda: entries)
    try:
        yield clients
    finally:
        clients.close()


def current(clients: Clients, alias: str = "default") -> ServerReport:
    """The report on one, when all that it watches is current."""
    watch = clients.watch(alias)
    assert watch is not None
    watch.wait_until_current(timeout=BOUND)
    return next(server for server in report(clients).servers if server.alias == alias)


# -- the report --------------------------------------------------------------------------------------------------------


def test_a_server_that_tells_of_changes_is_reported_as_such(server: Server) -> None:
    with clients_of(default={"target": server.url + "?key=hunter2", "watch": [CONFIG], "catalog": True}) as clients:
        found = current(clients)
        assert (found.health, found.state, found.era, found.mode) == (OK, "live", "modern", "subscriptions/listen")
        assert found.protocol_version == "2026-07-28"
        assert found.where == server.url + "?…"
        assert [(row.name, row.is_list, row.kept_by, row.condition) for row in found.resources] == [
            (CONFIG, False, "notices", "current"),
            ("catalog", True, "notices", "current"),
        ]
        held = clients["default"].read_resource(CONFIG)
        row = found.resources[0]
        assert row.version == held.version and row.read_at == held.read_at and row.age is not None
        assert row.error is None and not row.too_old


@pytest.mark.parametrize(
    "options, mode",
    [
        ({"eras": ["legacy"]}, "resources/subscribe"),
        ({"eras": ["legacy"], "subscribe": False, "list_changed": False}, "polling"),
    ],
)
def test_so_is_an_old_one(options: "Dict[str, Any]", mode: str) -> None:
    with Server(**options) as server:
        server.add(CONFIG, "colour = blue")
        with clients_of(default={"target": server.url, "watch": [CONFIG]}) as clients:
            found = current(clients)
            assert (found.era, found.mode, found.health) == ("legacy", mode, OK)
            assert found.protocol_version is not None and found.protocol_version < "2026"


def test_what_is_polled_is_told_apart(server: Server) -> None:
    with clients_of(default={"target": server.url, "watch": [CONFIG], "listen": False}) as clients:
        found = current(clients)
        assert (found.mode, found.state, found.resources[0].kept_by) == ("polling", "polling", "polling")
        assert found.status is not None and found.status.uncovered == {CONFIG}


def test_the_arguments_of_a_command_are_not_shown() -> None:
    with StdioServer() as server:
        server.add(CONFIG, "colour = blue")
        with clients_of(default={"target": server.command, "watch": [CONFIG]}) as clients:
            found = current(clients)
            words = Client(server.command).where.split()
            assert len(words) > 2 and found.where == " ".join(words[:2]) + " …"


def test_a_server_that_was_never_reached_is_failing_and_says_why(server: Server) -> None:
    server.kill()
    with clients_of(default={"target": server.url, "watch": [CONFIG]}) as clients:
        watch = clients.watch("default")
        assert watch is not None
        watch.wait_for_state(State.INTERRUPTED, timeout=BOUND)
        found = report(clients).servers[0]
        assert (found.health, found.mode, found.era) == (FAILING, "nothing", None)
        assert found.resources[0].condition == "unread" and found.resources[0].kept_by == "nothing"
        assert found.status is not None and "cannot be reached" in str(found.status.last_error)


def test_a_server_that_went_away_is_degraded_until_its_copies_are_too_old(server: Server) -> None:
    with clients_of(
        default={"target": server.url, "watch": [CONFIG]}, strict={"target": server.url, "watch": [CONFIG], "max_stale": 0}
    ) as clients:
        assert current(clients).health == current(clients, "strict").health == OK
        server.kill()
        for alias in clients:
            watch = clients.watch(alias)
            assert watch is not None
            watch.wait_for_state(State.INTERRUPTED, timeout=BOUND)
        default, strict = report(clients).servers
        assert default.resources[0].condition == strict.resources[0].condition == "stale"
        assert (default.health, strict.health) == (DEGRADED, FAILING)


def test_a_resource_that_does_not_exist_is_missing(server: Server) -> None:
    with clients_of(default={"target": server.url, "watch": [GONE]}) as clients:
        found = current(clients)
        assert found.health == DEGRADED
        assert found.resources[0].condition == "missing" and found.resources[0].error is not None


def test_watches_that_a_program_opens_itself_are_reported_too(server: Server) -> None:
    server.add("docs://other", "one")
    with clients_of(default={"target": server.url, "watch": [CONFIG]}) as clients:
        with clients["default"].watch("docs://other", CONFIG, prompts=True) as watch:
            watch.wait_until_current(timeout=BOUND)
            found = report(clients).servers[0]
            assert [row.name for row in found.resources] == [CONFIG, "docs://other", "prompts"]
            assert found.status is not None and found.status.covered == {CONFIG, "docs://other"}
            assert found.status.prompts == "listen"


def test_what_is_not_watched_says_nothing_and_harms_nothing(server: Server) -> None:
    with clients_of(default=server.url) as clients:
        found = report(clients)
        assert (found.servers[0].health, found.servers[0].state, found.health) == ("unwatched", "unwatched", OK)
        assert server.count() == 0


def test_wrong_settings_are_failing_and_say_why() -> None:
    with clients_of(default=7) as clients:
        found = report(clients).servers[0]
        assert (found.health, found.state) == (FAILING, "misconfigured")
        assert "MCP_SERVERS['default']" in str(found.error)
        assert found.to_json()["last_error"] == found.error


def test_the_report_is_plain_values(server: Server) -> None:
    with clients_of(default={"target": server.url, "watch": [CONFIG]}, idle=server.url) as clients:
        current(clients)
        document = json.loads(json.dumps(report(clients).to_json()))
        assert document["status"] == "ok" and document["pid"] == os.getpid()
        default, idle = document["servers"]
        assert default["covered"] == [CONFIG] and default["state"] == "live" and default["reconnects"] == 0
        assert default["resources"][0]["condition"] == "current"
        assert idle["state"] == "unwatched" and idle["resources"] == []


def test_a_long_error_is_cut(server: Server) -> None:
    server.inject(faults.JsonRpcError(-32000, "x" * 100000), method="resources/read", times=None)
    with clients_of(default={"target": server.url, "watch": [CONFIG]}) as clients:
        watch = clients.watch("default")
        assert watch is not None
        with pytest.raises(ServerError):
            clients["default"].read_resource(CONFIG)
        noted = threading.Event()
        while watch.held(CONFIG).error is None:  # by a thread of the client, soon
            assert not noted.wait(0.05)
        found = report(clients).servers[0]
        assert len(str(found.resources[0].error)) <= 1001
        assert len(json.dumps(found.to_json())) < 5000
        assert len(page(report(clients))) < 20000


# -- the page ----------------------------------------------------------------------------------------------------------


class Reader(html.parser.HTMLParser):
    """Checks that a page is well formed, and notes its elements, attributes and text."""

    VOID = {"meta", "br", "link"}

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: "List[str]" = []
        self.names: "List[str]" = []
        self.attributes: "List[Any]" = []
        self.text: "List[str]" = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.names.append(tag)
        self.attributes.extend(attrs)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text.append(data)

    def error(self, message: str) -> None:  # asked for by Python 3.7 to 3.9
        raise AssertionError(message)


HOSTILE = "<script>alert('1')</script>\"'&\u202e\n\x1b[31m"


def made_up(count: int = 1) -> Report:
    """A report in which everything is text that somebody hostile chose."""
    rows = [ResourceReport(HOSTILE + str(number), False, HOSTILE, "current", 5.0, HOSTILE) for number in range(count)]
    rows.append(ResourceReport("docs://last", False, "nothing", "unread", error=HOSTILE))
    status = Status(State.INTERRUPTED, last_contact=1e9, last_error=HOSTILE, last_ending=HOSTILE, reconnects=3, gaps=4)
    server = ServerReport(HOSTILE, FAILING, HOSTILE, HOSTILE, HOSTILE, HOSTILE, status, tuple(rows))
    return Report((server, ServerReport("b" + HOSTILE, FAILING, error=HOSTILE)), 1e9 + 90.0, 77)


def test_nothing_that_others_wrote_is_markup_or_leaves_its_line() -> None:
    read = Reader(page(made_up(), json_address=HOSTILE))
    assert "script" not in read.names and not {name for name, _ in read.attributes if name.startswith("on")}
    assert ("href", HOSTILE) in read.attributes
    text = "".join(read.text)
    # Twice the name, place, era, revision, mode, ending and error of the server, then of its resources.
    assert text.count("<script>alert('1')</script>\"'&\\u202e\\n\\x1b[31m") == 13
    assert "\u202e" not in text and "\x1b" not in text


def test_the_page_shows_all_that_there_is_to_know() -> None:
    text = re.sub(r"\s+", " ", " ".join(Reader(page(made_up())).text))
    for told in ("process 77", "failing", "interrupted", "Reconnects 3", "Gaps 4", "90 s ago (", "never read", "Watched: 2"):
        assert told in text, told
    assert re.search(r"Covered by notices 0 URIs Not covered 0 URIs", text)


def test_the_page_has_no_script_loads_itself_again_and_fits_a_phone() -> None:
    shown = page(made_up(), refresh=7)
    read = Reader(shown)
    assert not {"script", "link", "img", "iframe", "form"} & set(read.names)
    assert '<meta http-equiv="refresh" content="7">' in shown
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in shown
    assert {name for name, _ in read.attributes} & {"src", "style"} == set()


def test_every_state_is_told_by_a_word_and_a_sign_and_not_by_a_colour_alone() -> None:
    shown = page(made_up())
    for span in re.findall(r'<span class="word [a-z]+">(.*?)</span> ([^<]*)</span>', shown):
        assert span[0].startswith('<span aria-hidden="true">') and span[1].strip()
    states = [state.value for state in State] + ["misconfigured", "unwatched"]
    for state in states:
        status = None if state in ("misconfigured", "unwatched") else Status(State(state))
        error = "why" if state == "misconfigured" else None
        shown = page(Report((ServerReport("a", OK, status=status, error=error),), 0.0, 1))
        assert 'data-state="%s"' % state in shown


def test_very_many_resources_are_cut_short_with_those_in_trouble_first() -> None:
    shown = page(made_up(MOST_ROWS + 50))
    assert shown.count("<tr data-condition") == MOST_ROWS
    assert "Watched: %d; shown are the first %d" % (MOST_ROWS + 51, MOST_ROWS) in shown
    assert shown.index("docs://last") < shown.index('data-condition="current"')


def test_a_page_without_servers_says_so() -> None:
    assert "The settings name no servers." in page(Report((), 0.0, 1))


# -- who may see what --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("guard", [None, True, "mysite.guard"])
def test_without_a_guard_there_is_no_page(guard: Any) -> None:
    with clients_of() as clients, pytest.raises(TypeError, match="the status page needs a guard"):
        StatusPage(clients, guard)


@pytest.mark.parametrize("allowed", [False, None, 0, 1, "yes", object(), ("Basic",)])
@pytest.mark.parametrize("as_json", [False, True])
def test_only_true_lets_in(allowed: Any, as_json: bool, caplog: Any) -> None:
    with clients_of(default="https://hidden.example.com/mcp") as clients:
        answer = StatusPage(clients, lambda request: allowed).answer("request", as_json)
        assert answer.status == 403 and "hidden" not in answer.body
        assert answer.content_type.startswith("application/json" if as_json else "text/plain")
        assert bool(caplog.records) is bool(allowed)


def test_the_guard_sees_the_request_and_what_it_raises_is_raised() -> None:
    class Forbidden(Exception):
        pass

    seen = []

    def guard(request: Any) -> bool:
        seen.append(request)
        raise Forbidden

    with clients_of() as clients, pytest.raises(Forbidden):
        StatusPage(clients, guard).answer("request")
    assert seen == ["request"]


def test_the_page_and_its_json_are_never_kept_and_may_load_nothing(server: Server) -> None:
    with clients_of(default=server.url) as clients:
        shown = StatusPage(clients, lambda request: True, 9)
        answer = shown.answer("request", json_address="/mcp/status.json")
        assert (answer.status, answer.content_type) == (200, "text/html; charset=utf-8")
        assert 'href="/mcp/status.json"' in answer.body and 'content="9"' in answer.body
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'sha256-")
        assert answer.headers["X-Frame-Options"] == "DENY"
        plain = shown.answer("request", as_json=True)
        assert json.loads(plain.body)["servers"][0]["alias"] == "default"
        assert plain.headers["Cache-Control"] == answer.headers["Cache-Control"] == "no-store"


def test_a_health_check_tells_one_word_for_each_server_and_nothing_else(server: Server) -> None:
    entries = {"default": {"target": server.url, "watch": [CONFIG]}, "idle": server.url}
    with clients_of(**entries) as clients:
        current(clients)
        answer = health(clients)
        assert answer.status == 200
        assert json.loads(answer.body) == {"status": "ok", "servers": {"default": "ok", "idle": "unwatched"}}
    server.kill()
    with clients_of(**entries) as clients:
        answer = health(clients)
        assert answer.status == 503
        assert json.loads(answer.body)["status"] == "failing"


# -- lines for a terminal ----------------------------------------------------------------------------------------------


def test_contents_are_text_where_they_are_text(server: Server) -> None:
    server.add("docs://logo", b"\x89PNG")
    with Client(server.url) as client:
        assert telling.contents(client, CONFIG) == "colour = blue"
        assert telling.contents(client, "docs://logo") == b"\x89PNG"


def test_changes_are_told_as_lines_after_what_there_is_now(server: Server) -> None:
    with clients_of(default={"target": server.url, "watch": [CONFIG]}) as clients:
        lines = telling.changes(clients, "default", [], count=1)
        time, *first = next(lines).split("\t")
        assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$", time)
        assert first == ["current", CONFIG, clients["default"].read_resource(CONFIG).version]
        server.update(CONFIG, "colour = red")
        assert next(lines).split("\t")[1:3] == ["updated", CONFIG]
        assert list(lines) == []


def test_changes_of_nothing_are_an_error_that_says_what_to_do(server: Server) -> None:
    with clients_of(default=server.url) as clients:
        with pytest.raises(ValueError, match="nothing to watch: give URIs, or name some under 'watch'"):
            next(telling.changes(clients, "default", []))


def test_the_status_is_told_in_lines(server: Server) -> None:
    with clients_of(default={"target": server.url, "watch": [CONFIG]}, idle=server.url, wrong=7) as clients:
        found = telling.status(clients, BOUND)
        assert telling.is_failing(found)
        first, second, third, fourth = telling.status_lines(found)
        assert first.startswith("default: ok; %s; modern (2026-07-28); mode: subscriptions/listen; live: 1" % server.url)
        assert second.startswith("  %s: current, " % CONFIG) and second.endswith("kept current by notices")
        assert third == "idle: unwatched; " + server.url
        assert fourth.startswith("wrong: misconfigured: MCP_SERVERS['wrong']")
        assert json.loads("\n".join(telling.status_lines(found, as_json=True)))["status"] == "failing"
    assert telling.status_lines(Report((), 0.0, 1)) == ["the settings name no servers"]
