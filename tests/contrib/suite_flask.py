"""What ``mcp_sync.contrib.flask`` does. Run with each Flask in its own environment: see ``test_frameworks.py``."""

import json
import threading
from typing import Any, Dict, Iterator, List

import pytest
from flask import Flask, abort, current_app, redirect

from mcp_sync import MCPSyncError
from mcp_sync.contrib.flask import MCPSync, current_mcp, health, status_blueprint
from mcp_sync.contrib.settings import SettingsError
from mcp_sync.testing import Server

CONFIG = "docs://service/config"
BOUND = 20.0


class Credentials:
    def __call__(self, request: Any) -> Any:
        request.headers["Authorization"] = "Bearer of-the-site"
        return request


def only_mondays(request: Any) -> bool:
    return bool(request.headers.get("X-Day") == "monday")


MONDAY = {"X-Day": "monday"}


@pytest.fixture
def server() -> "Iterator[Server]":
    with Server(ttl_ms=0) as server:
        server.add(CONFIG, "colour = blue")
        yield server


@pytest.fixture
def make() -> "Iterator[Any]":
    """Make an app with these servers; its clients are closed at the end."""
    made: "List[Flask]" = []

    def make(mcp: Any = None, **entries: Any) -> Flask:
        app = Flask("site")
        app.config["MCP_SERVERS"] = entries
        app.testing = True
        (mcp or MCPSync()).init_app(app)
        made.append(app)
        return app

    yield make
    for app in made:
        app.extensions["mcp_sync"].close()


def watched(server: Server) -> "Dict[str, Any]":
    return {"target": server.url, "watch": [CONFIG]}


def current(app: Flask) -> None:
    app.extensions["mcp_sync"].watch("default").wait_until_current(timeout=BOUND)


# -- the clients -------------------------------------------------------------------------------------------------------


def test_an_app_has_the_clients_of_its_settings_from_first_use_on(server: Server, make: Any) -> None:
    app = make(default=server.url)
    assert server.count() == 0

    @app.route("/")
    def index() -> str:
        text: str = current_mcp["default"].read_resource(CONFIG, stale_ok=True).text
        return text

    assert app.test_client().get("/").data == b"colour = blue"
    server.kill()
    assert app.test_client().get("/").data == b"colour = blue"


def test_the_extension_can_be_given_the_app_at_once(server: Server) -> None:
    app = Flask("site")
    app.config["MCP_SERVERS"] = {"default": server.url}
    MCPSync(app)
    with app.app_context():
        assert list(current_mcp) == ["default"] and "default" in current_mcp
        assert current_mcp["default"].read_resource(CONFIG).text == "colour = blue"
        current_mcp.close()


def test_two_apps_of_one_extension_have_clients_of_their_own(server: Server, make: Any) -> None:
    with Server() as other:
        other.add(CONFIG, "colour = green")
        mcp = MCPSync()
        texts = []
        for app in (make(mcp, default=server.url), make(mcp, default=other.url)):
            with app.app_context():
                texts.append(current_mcp["default"].read_resource(CONFIG).text)
        assert texts == ["colour = blue", "colour = green"]


def test_credentials_are_found_by_their_dotted_path(make: Any) -> None:
    def authenticate(headers: Any) -> Any:
        return "site" if headers.get("authorization") == "Bearer of-the-site" else None

    with Server(authenticate=authenticate) as server:
        server.add(CONFIG, "colour = blue")
        with make(default={"target": server.url, "auth": __name__ + ".Credentials"}).app_context():
            assert current_mcp["default"].read_resource(CONFIG).text == "colour = blue"
        with make(default=server.url).app_context(), pytest.raises(MCPSyncError):
            current_mcp["default"].read_resource(CONFIG)


def test_mistakes_in_the_settings_are_told_when_the_app_is_made(make: Any) -> None:
    with pytest.raises(SettingsError) as raised:
        make(default=7, docs={"target": "https://docs.example.com/mcp", "wotch": [CONFIG]})
    assert "MCP_SERVERS['default']: the target is a int. Give its URL" in str(raised.value)
    assert "MCP_SERVERS['docs'] has the unknown key 'wotch'. Did you mean 'watch'." in str(raised.value)


def test_a_dotted_path_that_leads_nowhere_is_told_at_first_use(make: Any) -> None:
    with make(default={"target": "https://docs.example.com/mcp", "auth": "no.such.thing"}).app_context():
        with pytest.raises(SettingsError, match="no.such cannot be imported"):
            current_mcp["default"]


def test_an_app_without_the_extension_says_so() -> None:
    with Flask("site").app_context(), pytest.raises(RuntimeError, match=r"call MCPSync\(app\)"):
        current_mcp["default"]


def test_listeners_are_called_in_the_context_of_the_app_and_one_that_fails_is_logged(
    server: Server, make: Any, caplog: Any
) -> None:
    mcp = MCPSync()
    told: "List[Any]" = []
    done = threading.Event()

    @mcp.on_change
    def broken(*_: Any) -> None:
        raise LookupError("of the listener")

    @mcp.on_change
    def listener(alias: str, client: Any, change: Any) -> None:
        told.append((current_app.name, current_mcp[alias] is client, change.kind, change.uri))
        done.set()

    app = make(mcp, default=watched(server))
    current(app)
    server.update(CONFIG, "colour = red")
    assert done.wait(BOUND)
    assert told == [("site", True, "updated", CONFIG)]
    assert "a listener for changes of 'default' failed" in caplog.text and "of the listener" in caplog.text


# -- the status page and the health check ------------------------------------------------------------------------------


@pytest.mark.parametrize("guard", [None, True, "mysite.guard"])
def test_there_is_no_status_page_without_a_guard(guard: Any) -> None:
    with pytest.raises(TypeError, match="needs a guard"):
        status_blueprint(guard=guard)


def test_there_is_no_status_page_unless_it_is_asked_for(server: Server, make: Any) -> None:
    app = make(default=server.url)
    assert [rule.rule for rule in app.url_map.iter_rules() if "static" not in rule.rule] == []


def test_the_page_and_its_json_are_for_those_whom_the_guard_lets_in(server: Server, make: Any) -> None:
    app = make(default=watched(server))
    app.register_blueprint(status_blueprint(guard=only_mondays, refresh=9), url_prefix="/mcp")
    current(app)
    browser = app.test_client()
    for address in ("/mcp/", "/mcp/status.json"):
        refused = browser.get(address)
        assert refused.status_code == 403 and b"127.0.0.1" not in refused.data
        assert browser.post(address, headers=MONDAY).status_code == 405
    shown = browser.get("/mcp/", headers=MONDAY)
    text = shown.data.decode("utf-8")
    assert shown.status_code == 200 and "subscriptions/listen" in text and CONFIG in text
    assert 'href="/mcp/status.json"' in text and 'content="9"' in text
    assert shown.headers["Content-Type"] == "text/html; charset=utf-8" and shown.headers["Cache-Control"] == "no-store"
    assert shown.headers["Content-Security-Policy"].startswith("default-src 'none'")
    document = json.loads(browser.get("/mcp/status.json", headers=MONDAY).data.decode("utf-8"))
    assert document["servers"][0]["covered"] == [CONFIG]


def test_a_guard_may_abort_and_what_is_no_answer_lets_nobody_in(server: Server, make: Any) -> None:
    def teapot(request: Any) -> bool:
        abort(418)

    app = make(default=server.url)
    app.register_blueprint(status_blueprint(guard=teapot), url_prefix="/a")
    app.register_blueprint(status_blueprint(lambda request: redirect("/login"), name="b"), url_prefix="/b")
    assert app.test_client().get("/a/").status_code == 418
    assert app.test_client().get("/b/").status_code == 403


def test_the_health_check_is_for_everybody(server: Server, make: Any) -> None:
    app = make(default=watched(server))
    app.add_url_rule("/health", view_func=health)
    current(app)
    answer = app.test_client().get("/health")
    assert answer.status_code == 200
    assert json.loads(answer.data.decode("utf-8")) == {"status": "ok", "servers": {"default": "ok"}}
    server.kill()
    app = make(default=watched(server))
    app.add_url_rule("/health", view_func=health)
    answer = app.test_client().get("/health")
    assert answer.status_code == 503 and server.url.encode("ascii") not in answer.data


# -- commands ----------------------------------------------------------------------------------------------------------


def test_flask_mcp_read_prints_what_a_resource_holds(server: Server, make: Any) -> None:
    server.add("docs://logo", b"\x89PNG\n")
    run = make(default=server.url, other=server.url).test_cli_runner()
    assert run.invoke(args=["mcp", "read", CONFIG]).output == "colour = blue\n"
    assert run.invoke(args=["mcp", "read", "--server", "other", CONFIG]).output == "colour = blue\n"
    assert run.invoke(args=["mcp", "read", "docs://logo"]).stdout_bytes == b"\x89PNG\n"


def test_flask_mcp_read_tells_what_went_wrong_in_one_line(server: Server, make: Any) -> None:
    run = make(default=server.url).test_cli_runner()
    missing = run.invoke(args=["mcp", "read", "docs://none"])
    assert missing.exit_code == 1 and missing.output.startswith("Error: ") and "docs://none" in missing.output
    unknown = run.invoke(args=["mcp", "read", "--server", "docs", CONFIG])
    assert unknown.exit_code == 1
    assert "there is no server 'docs' in MCP_SERVERS; there are: 'default'" in unknown.output


def test_flask_mcp_watch_prints_a_line_for_each_resource_and_each_change(server: Server, make: Any) -> None:
    app = make(default=watched(server))
    # Between the first line and the next: the server's change is told by its notice, whenever that comes.
    current(app)
    server.update(CONFIG, "colour = red")
    done = app.test_cli_runner().invoke(args=["mcp", "watch", "--count", "1"])
    assert [line.split("\t")[1:3] for line in done.output.splitlines()] == [["current", CONFIG], ["updated", CONFIG]]
    other = make(default=server.url).test_cli_runner()
    assert "nothing to watch" in other.invoke(args=["mcp", "watch"]).output
    line = other.invoke(args=["mcp", "watch", "--count", "0", CONFIG]).output
    assert line.split("\t")[1:3] == ["current", CONFIG]


def test_flask_mcp_status_prints_how_the_servers_do(server: Server, make: Any) -> None:
    run = make(default=watched(server)).test_cli_runner()
    shown = run.invoke(args=["mcp", "status"])
    assert shown.exit_code == 0 and shown.output.startswith("default: ok; %s; modern (2026-07-28)" % server.url)
    assert json.loads(run.invoke(args=["mcp", "status", "--json"]).output)["status"] == "ok"
    server.kill()
    run = make(default=watched(server)).test_cli_runner()
    assert run.invoke(args=["mcp", "status", "--wait", "0.1"]).exit_code == 1
