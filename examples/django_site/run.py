"""Run the site, with a server of its own whose document changes every few seconds, until Ctrl-C.

    pip install 'mcp-sync-client[django]'
    python examples/django_site/run.py [PORT]

Then look at http://127.0.0.1:8000/. A real site has a server already, and is started like any other.
"""

import os
import sys
import threading
from pathlib import Path

from mcp_sync.testing import Server

NOTICE = "docs://notices/today"


def publish(server: Server, ended: threading.Event) -> None:
    edition = 1
    while not ended.wait(3.0):
        edition += 1
        server.update(NOTICE, "Edition %d of today's notice: tea & cake at <four>." % edition)


def main() -> None:
    port = sys.argv[1] if len(sys.argv) > 1 else "8000"
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    os.environ["DJANGO_SETTINGS_MODULE"] = "docs_site.settings"
    with Server() as server:
        server.add(NOTICE, "Edition 1 of today's notice: tea & cake at <four>.")
        os.environ["DOCS_MCP_URL"] = server.url
        ended = threading.Event()
        publisher = threading.Thread(target=publish, args=(server, ended))
        publisher.start()
        try:
            from django.core.management import execute_from_command_line

            execute_from_command_line(["manage.py", "runserver", "--noreload", "127.0.0.1:" + port])
        finally:
            ended.set()
            publisher.join()


if __name__ == "__main__":
    main()
