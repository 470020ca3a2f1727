"""A program whose child, made by fork, reads with the client of its parent.

Arguments: a JSON object that says which server (see ``client_of.py``), and a URI. It writes one JSON object a line, and
waits for a line before the fork, and for one after it.
"""
import json
import os
import select
import sys

from client_of import LIMIT, announce, client_of, say


def main(server, uri):
    with client_of(server) as client, client.watch(uri) as watch:
        watch.wait_until_current(timeout=LIMIT)
        say(parent=client.read_resource(uri).text)
        sys.stdin.readline()
        say(child=answer_of_child(client, uri))
        sys.stdin.readline()
        announce(server, client)
        for change in watch.changes(timeout=LIMIT):
            say(changed=change.current.text, state=watch.status.state.name, gaps=watch.status.gaps)
            break
        say(parent=client.read_resource(uri).text)


def answer_of_child(client, uri):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            first = client.read_resource(uri, timeout=LIMIT).text
            second = client.read_resource(uri, cache_mode="refresh", timeout=LIMIT).text
            client.close()
            answer = [first, second]
        except BaseException as error:
            answer = repr(error)
        os.write(writing, json.dumps(answer).encode("ascii"))
        os._exit(0)
    os.close(writing)
    answered, _, _ = select.select([reading], [], [], 2 * LIMIT)
    if not answered:
        os.kill(child, 9)
    # Its end closes the pipe, whether it answered or was killed.
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return json.loads(answer.decode("ascii")) if answer else "no answer"


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2])
