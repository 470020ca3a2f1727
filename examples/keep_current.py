"""Keep one document of a server current, and print it whenever it changes, until Ctrl-C.

    python keep_current.py http://127.0.0.1:8000/mcp docs://service/config
    python keep_current.py docs://service/config -- python my_server.py
"""

import sys
from typing import List, Union

from mcp_sync import Client


def follow(server: Union[str, List[str]], uri: str) -> None:
    with Client(server) as client, client.watch(uri) as watch:
        watch.wait_until_current(timeout=30)
        print("now: %s" % client.read_resource(uri).text, flush=True)
        for change in watch.changes():
            # The change is a fact of the past; what is printed is the present, from memory.
            print("%s: %s" % (change.kind, client.read_resource(uri, stale_ok=True).text), flush=True)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    try:
        if "--" in arguments:
            follow(arguments[arguments.index("--") + 1 :], arguments[0])
        elif len(arguments) == 2:
            follow(*arguments)
        else:
            sys.exit(__doc__)
    except KeyboardInterrupt:
        pass
