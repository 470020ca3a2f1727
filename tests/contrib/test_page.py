"""The status page as a browser shows it: headless Chromium, if there is one on this machine."""

import contextlib
import html
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any, Dict, Iterator, List
from urllib.parse import parse_qs, urlsplit

import pytest

from mcp_sync import State, Status
from mcp_sync.contrib.clients import Clients
from mcp_sync.contrib.page import page
from mcp_sync.contrib.report import DEGRADED, FAILING, OK, UNWATCHED, Report, ResourceReport, ServerReport
from mcp_sync.contrib.serving import StatusPage

from .conftest import LIMIT

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here (Debian's package chromium)")

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars"
).split()

NOTICE = "docs://notices/today"
LONG = "https://intranet.example.com/" + "a-name-with-no-place-to-break-it/" * 3 + "x" * 200

#: Tells what a browser has made of the page in a frame of some width: a phone is narrower than a window can be.
MEASURE = """<!DOCTYPE html>
<title>measuring</title>
<body>
<iframe src="/made-up" style="width: %dpx; height: 3000px; border: 0"></iframe>
<pre id="measured"></pre>
<script>
const frame = document.querySelector("iframe");
frame.onload = () => {
  const page = frame.contentDocument, root = page.documentElement;
  const boxes = [...page.querySelectorAll("body *")].map((element) => [element, element.getBoundingClientRect()]);
  const visible = (element) => getComputedStyle(element).position !== "absolute";
  document.getElementById("measured").textContent = JSON.stringify({
    width: root.clientWidth,
    scroll: root.scrollWidth,
    outside: boxes.filter(([e, box]) => visible(e) && box.width && box.right > root.clientWidth + 0.5).map(([e]) => e.outerHTML),
    card: getComputedStyle(page.querySelector("section")).borderTopLeftRadius,
    rows: getComputedStyle(page.querySelector("tbody tr")).display,
    smallest: Math.min(...boxes.map(([e]) => parseFloat(getComputedStyle(e).fontSize))),
    scripts: page.scripts.length,
  });
};
</script>
</body>
"""


def made_up() -> Report:
    """Every state, and texts that are too long for any line."""

    def row(name: str, condition: str, kept_by: str = "notices", error: Any = None) -> ResourceReport:
        there = condition in ("current", "stale")
        return ResourceReport(
            name, False, kept_by, condition, 400.0 if there else None, "35595f213aec46f0" if there else None, error=error
        )

    rows = (
        row("docs://service/config", "current"),
        row(LONG, "stale", "polling", "y" * 500),
        row("docs://c", "unread", "nothing"),
        row("docs://d", "missing"),
    )
    servers = [
        ServerReport(
            state.value,
            DEGRADED,
            "https://docs.example.com/mcp",
            "modern",
            "2026-07-28",
            "subscriptions/listen and polling",
            Status(state, frozenset(["docs://service/config"]), frozenset([LONG]), "listen", 1e9, "z" * 800, "reset", 12, 13),
            rows,
        )
        for state in State
    ]
    servers.append(ServerReport("w" * 300, UNWATCHED, "python " + "v" * 300))
    servers.append(ServerReport("broken", FAILING, error="u" * 400))
    servers.append(ServerReport("fine", OK))
    return Report(tuple(servers), 1e9 + 90.0, 4711)


class Site(http.server.ThreadingHTTPServer):
    """Serves the page of real clients to whoever says ``?password=open``, and a made-up one to everybody."""

    daemon_threads = True

    def __init__(self, clients: Clients) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked = 0
        self.asked_twice = threading.Event()
        self.status_page = StatusPage(clients, self.lets_in, refresh=1)
        # The page refuses to be in any frame, which is how it is measured.
        self.framed = "frame-ancestors 'self'"

    @staticmethod
    def lets_in(query: "Dict[str, List[str]]") -> bool:
        return query.get("password") == ["open"]

    @property
    def url(self) -> str:
        return "http://127.0.0.1:%d" % self.server_address[1]


class Handler(http.server.BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        query = parse_qs(asked.query)
        if asked.path == "/":
            self.server.asked += 1
            if self.server.asked == 2:
                self.server.asked_twice.set()
        answer = self.server.status_page.answer(query)
        headers = dict(answer.headers, **{"Content-Type": answer.content_type})
        body, status = answer.body, answer.status
        if asked.path == "/made-up":
            allowed = self.server.status_page.answer({"password": ["open"]})
            headers = dict(allowed.headers, **{"Content-Type": allowed.content_type})
            policy = headers["Content-Security-Policy"]
            assert "frame-ancestors 'none'" in policy and headers.pop("X-Frame-Options") == "DENY"
            headers["Content-Security-Policy"] = policy.replace("frame-ancestors 'none'", self.server.framed)
            body, status = page(made_up(), refresh=600), 200
        elif asked.path == "/measure":
            headers, body, status = {"Content-Type": "text/html"}, MEASURE % int(query["width"][0]), 200
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body.encode("utf-8"))

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def site(server: Any) -> "Iterator[Site]":
    clients = Clients(lambda: {"default": {"target": server.url, "watch": [NOTICE]}})
    watch = clients.watch("default")
    assert watch is not None
    watch.wait_until_current(timeout=LIMIT)
    site = Site(clients)
    thread = threading.Thread(target=site.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield site
    finally:
        site.shutdown()
        thread.join(LIMIT)
        site.server_close()
        clients.close()


@contextlib.contextmanager
def chromium(folder: Path, *arguments: str) -> "Iterator[Any]":
    """A running Chromium, with all its processes, which are ended with the block."""
    process = subprocess.Popen(
        [str(CHROMIUM), *FLAGS, "--user-data-dir=%s" % (folder / "profile"), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"HOME": str(folder), "PATH": "/usr/local/bin:/usr/bin:/bin", "XDG_RUNTIME_DIR": str(folder)},
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=LIMIT)
        shutil.rmtree(str(folder / "profile"), ignore_errors=True)


@pytest.fixture
def browse(tmp_path: Path) -> Any:
    """Return what Chromium prints."""

    def browse(url: str, *options: str) -> str:
        with chromium(tmp_path, *options, url) as process:
            printed, _ = process.communicate(timeout=LIMIT)
            assert process.returncode == 0
        return str(printed.decode("utf-8"))

    return browse


def test_a_browser_shows_how_a_server_does(site: Site, browse: Any) -> None:
    shown = browse(site.url + "/?password=open", "--dump-dom")
    assert "<title>MCP servers: ok</title>" in shown
    text = re.sub(r"\s+", " ", html.unescape(re.sub(r"<style>.*?</style>|<[^>]+>", " ", shown, flags=re.S)))
    assert "Mode subscriptions/listen Covered by notices 1 URI Not covered 0 URIs" in text
    assert re.search(r"default ✓ ok .*State ● live .*%s ✓ current notices \d+ s [0-9a-f]{16}" % NOTICE, text)


def test_a_browser_shows_nothing_to_whom_the_guard_does_not_let_in(site: Site, browse: Any) -> None:
    shown = browse(site.url + "/?password=other", "--dump-dom")
    assert "403: this page is not for you." in shown and NOTICE not in shown


def test_the_page_loads_itself_again(site: Site, tmp_path: Path) -> None:
    # With a port for debugging it stays, instead of ending as soon as the page is there.
    with chromium(tmp_path, "--remote-debugging-port=0", site.url + "/?password=open"):
        assert site.asked_twice.wait(LIMIT)


@pytest.mark.parametrize("width, rows", [(360, "block"), (320, "block"), (1200, "table-row")])
def test_nothing_sticks_out_at_the_side(width: int, rows: str, site: Site, browse: Any) -> None:
    shown = browse("%s/measure?width=%d" % (site.url, width), "--window-size=1400,3000", "--dump-dom")
    measured = json.loads(html.unescape(shown.partition('<pre id="measured">')[2].partition("</pre>")[0]))
    assert measured["width"] == width
    assert measured["scroll"] <= width and measured["outside"] == []
    assert measured["rows"] == rows  # on a phone a row is a card
    assert measured["card"] == "8px"  # the page's policy has let its own style in
    assert measured["smallest"] >= 12 and measured["scripts"] == 0


@pytest.mark.parametrize("name, width", [("desktop", 1200), ("phone", 360)])
def test_a_picture_can_be_taken(name: str, width: int, site: Site, browse: Any, tmp_path: Path) -> None:
    # To be looked at: pytest keeps its directories for a while.
    picture = tmp_path / (name + ".png")
    browse("%s/measure?width=%d" % (site.url, width), "--window-size=%d,3000" % (width + 16), "--screenshot=%s" % picture)
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 20000
