"""Run the site, with a server of its own whose document changes every few seconds, until Ctrl-C.

    pip install 'mcp-sync-client[flask]'
    python examples/flask_site/run.py [PORT]

Then look at http://127.0.0.1:5000/. A real site has a server already, and is started like any other:
``DOCS_MCP_URL=https://docs.example.com/mcp FLASK_APP=docs_site flask run``.
"""

import sys
import threading

from docs_site import create_app

from mcp_sync.testing import Server

NOTICE = "docs://notices/today"


def publish(server: Server, ended: threading.Event) -> None:
    edition = 1
    while not ended.wait(3.0):
        edition += 1
        server.update(NOTICE, "Edition %d of today's notice: tea & cake at <four>." % edition)


def main() -> None:
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    with Server() as server:
        server.add(NOTICE, "Edition 1 of today's notice: tea & cake at <four>.")
        ended = threading.Event()
        publisher = threading.Thread(target=publish, args=(server, ended))
        publisher.start()
        try:
            create_app(server.url).run("127.0.0.1", port, threaded=True)
        except KeyboardInterrupt:
            pass
        finally:
            ended.set()
            publisher.join()


if __name__ == "__main__":
    main()
