"""A program whose child, made by fork, reads with the client of its parent.

Arguments: URL, URI, poll interval in seconds. It writes one JSON object a line, and waits for a line before the fork,
and for one after it.
"""
import json
import os
import select
import sys

from mcp_sync import Client

LIMIT = 20.0


def main(url, uri, poll_interval):
    with Client(url, poll_interval=poll_interval) as client, client.watch(uri) as watch:
        watch.wait_until_current(timeout=LIMIT)
        say(parent=client.read_resource(uri).text)
        sys.stdin.readline()
        say(child=answer_of_child(client, uri))
        sys.stdin.readline()
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


def say(**values):
    print(json.dumps(values), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
