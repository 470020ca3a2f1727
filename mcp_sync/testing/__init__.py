"""A Model Context Protocol server to test against: in your process, on a real socket, obedient in every respect.

It needs nothing but the standard library, starts in a millisecond, and does what servers in the wild only do at night::

    from mcp_sync.testing import Server, faults

    with Server() as server:
        server.add("docs://service/config", "colour = blue", mime_type="text/plain")

        # Whatever is under test reads and watches server.url. Then the world changes:
        server.wait_for_streams(1)
        server.update("docs://service/config", "colour = red")

        # A late answer: the read is held after the server has looked the value up.
        with server.hold("resources/read", at="answer") as gate:
            gate.wait_reached()
            server.update("docs://service/config", "colour = green")

        # Trouble, once or for ever:
        server.inject(faults.Status(503), method="resources/read", times=2)
        server.inject(faults.NoAcknowledgement(), method="subscriptions/listen", times=None)
        server.end_streams("reset")
        server.kill()
        server.restart()

        # And afterwards, what was asked and what was true:
        server.count("resources/read", uri="docs://service/config")
        server.history("docs://service/config")

With pytest, take the fixture ``mcp_server``, which is such a server, started.

Where things are, from the bottom up; a file imports only from those before it:

* ``protocol``: messages, and what a server must refuse; ``wire``: one TCP connection;
* ``request``: what came in; ``streams``: who listens; ``answer``: what will go out; ``outlet``: its bytes;
* ``resources``: what the server holds; ``methods``: what it does for each method;
* ``call``: what a fault is; ``faults``: those that come with the package; ``control``: gates, and faults that wait;
  ``recorder``: what was asked;
* ``connection``: one connection from its first request to its end; ``acceptor``: the listening socket; ``lifecycle``:
  the port and all connections;
* ``server``: all of it behind one object.

It speaks revision 2026-07-28. It is made for tests: it trusts its users, and is not meant to serve anything else.
"""

from . import faults
from .answer import Answer
from .call import Call, Fault
from .control import Gate, Injection
from .request import Request
from .server import Server

__all__ = ["Answer", "Call", "Fault", "Gate", "Injection", "Request", "Server", "faults"]
