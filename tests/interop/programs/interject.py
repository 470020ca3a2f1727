"""Starts a server on standard input and output, and stands between it and its client: another hand at the same session.

Arguments: the path of a named pipe, and the server's command. Each line that comes through the named pipe is a message for
the server, as if the client had sent it; what the server answers to an id that is a text is not the client's, and goes
nowhere.
"""
import json
import os
import subprocess
import sys
import threading

server = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
lock = threading.Lock()


def tell(line):
    with lock:
        server.stdin.write(line)
        server.stdin.flush()


def listen_to_the_client():
    for line in sys.stdin.buffer:
        tell(line)
    with lock:
        server.stdin.close()


def listen_to_the_other_hand():
    # Opened for writing as well, so that it does not end when the other hand lets go of it.
    with open(os.open(sys.argv[1], os.O_RDWR), "rb") as messages:
        for line in messages:
            tell(line)


for work in (listen_to_the_client, listen_to_the_other_hand):
    threading.Thread(target=work, daemon=True).start()
for line in server.stdout:
    if not isinstance(json.loads(line).get("id"), str):
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
os._exit(server.wait())
