"""A program that starts a server as a child, forks, and goes on while its other half ends in one way or another.

Arguments: a JSON object that says which server (see ``client_of.py``); a URI; whether the forked child uses the client
(``uses`` or ``idles``), and how it ends. It writes one JSON object a line, and waits for a line before each step.
"""
import json
import os
import sys

from client_of import LIMIT, client_of, say


def main(server, uri, use, how):
    client = client_of(server)
    with client, client.watch(uri) as watch:
        watch.wait_until_current(timeout=LIMIT)
        go_on, goes_on = os.pipe()
        says, told = os.pipe()
        forked = os.fork()
        if forked == 0:
            os.close(goes_on)
            os.write(told, (client.read_resource(uri).text if use == "uses" else "idle").encode("utf-8"))
            os.read(go_on, 1)
            leave(client, how)
        os.close(go_on)
        say(parent=client.read_resource(uri).text, child=os.read(says, 1000).decode("utf-8"))
        sys.stdin.readline()
        if how == "outlives":
            client.close()
            say(closed=True)
            sys.stdin.readline()
        os.write(goes_on, b"x")
        os.waitpid(forked, 0)
        if how != "outlives":
            say(parent=client.read_resource(uri, cache_mode="refresh").text)
            sys.stdin.readline()


def leave(client, how):
    if how == "close":
        client.close()
    if how in ("close", "os._exit", "outlives"):
        os._exit(0)
    sys.exit(0)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), *sys.argv[2:])
