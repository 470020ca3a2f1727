"""A program that starts a server as a child, and ends in one way or another without having closed its client.

Arguments: a JSON object that says which server (see ``client_of.py``); a URI; how it ends. It writes one JSON object a
line, and waits for a line before the end.
"""
import json
import os
import sys

from client_of import LIMIT, announce, client_of, say


def main(server, uri, how):
    client = client_of(server)
    watch = client.watch(uri)
    watch.wait_until_current(timeout=LIMIT)
    announce(server, client)
    say(text=client.read_resource(uri).text)
    sys.stdin.readline()
    if how == "exception":
        raise RuntimeError("an error of the program's")
    if how == "sys.exit":
        sys.exit(0)
    if how == "os._exit":
        os._exit(0)
    if how == "waits":
        sys.stdin.readline()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2], sys.argv[3])
