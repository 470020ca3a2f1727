"""What the programs of this folder have in common: a client of the server that they are told of, and what they say."""
import json

from mcp_sync import Client, Command
from mcp_sync._deadline import Deadline

LIMIT = 20.0


def client_of(server):
    """Return a client.

    :param server: ``target``, a URL, or ``argv`` and ``env`` of a command; perhaps ``era`` and ``poll_interval``.
    """
    target = server["target"]
    if not isinstance(target, str):
        target = Command(target["argv"], env=target["env"])
    return Client(target, era=server.get("era", "auto"), poll_interval=server.get("poll_interval", 30.0))


def announce(server, client):
    """Let the server announce a change, by the tool for that which it may have, in the session of this client."""
    if server.get("announce"):
        client._connection.call("tools/call", server["announce"], deadline=Deadline(LIMIT))


def say(**values):
    print(json.dumps(values), flush=True)
