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

What it offers to be called are functions of yours, which tell progress, ask and see that they are cancelled::

    def rename(arguments, call):
        call.progress(1, 2)
        answers = call.ask({"sure": {"method": "elicitation/create", "params": {...}}})
        return {"renamed": answers["sure"]["action"] == "accept"}

    server.add_tool("rename", rename, input_schema={"type": "object"})
    server.add_prompt("review", lambda arguments: "Review " + arguments["code"], arguments=["code"])
    server.add_completion({"type": "ref/prompt", "name": "review"}, lambda argument: ["python", "perl"])

    server.add_tool("build", None, task=True)            # its result is a task, for you to script:
    task = server.wait_for_task()
    task.ask({"sure": {"method": "elicitation/create", "params": {...}}})
    task.wait_for_input()
    task.complete("built")

With pytest, take the fixture ``mcp_server``, which is such a server, started.

It is a server of the modern era (2026-07-28) unless you ask for another::

    Server(eras=["legacy"])                          # handshake, sessions, subscriptions, GET stream
    Server(eras=["modern", "legacy"])                # both on one path
    Server(eras=["legacy"], sessions=False, get_stream=False, modern_probe="400 html")
    Server(transport="http+sse")                     # the transport of 2024-11-05
    StdioServer(eras=["legacy"])                     # a process that the client starts: server.command

In the legacy era a server asks as well: ``server.ask("roots/list")``; its sessions end: ``server.expire_sessions()``;
and its streams are resumed: ``Server(eras=["legacy"], resumable=True)`` with ``faults.CutAndResume``.
``python -m mcp_sync.testing.stdio`` is a server on standard input and output for trying things at a terminal.

Where things are, from the bottom up; a file imports only from those before it:

* ``settings``, ``waiting``, ``protocol``: what does not change; where threads wait; messages, and what a server must
  refuse; ``wire``: one TCP connection;
* ``request``: what came in; ``streams``: who listens; ``resumption``: what is sent again; ``questions``, ``session``,
  ``sessions``: clients of the legacy era; ``answer``: what will go out; ``outlet``: its bytes;
* ``call``: what a fault is; ``values``: what a function's value becomes; ``capabilities``: what a client can do;
  ``tasks``: results that come later; ``ending``: that nobody waits any more; ``invocation``, ``runs``: what a function
  of the user's can do; ``functions``: tools, prompts and completions;
* ``resources``: what can be read; ``skills``: which of that are skills; ``param_headers``: what headers must repeat;
  ``task_methods``, ``methods``: what the server does for each method; ``modern``, ``legacy``: what the eras make of it;
* ``faults``: those that come with the package; ``control``: gates, and faults that wait; ``recorder``: what was asked;
* ``exchange``: one request on its way, over whatever transport; ``probe``: answers to a modern request from a server
  that knows none; ``face``, ``streamable``: what answers HTTP requests; ``connection``: one HTTP connection from its
  first request to its end;
* ``turns``, ``channel``: requests that share one way in and out; ``sse``: HTTP+SSE; ``relay``: the process that a
  client starts; ``process``: serving it;
* ``acceptor``: the listening socket; ``lifecycle``: the port and all connections;
* ``holdings``, ``offering``, ``scripting``, ``server``: all of it behind one object; ``stdio_server``, ``stdio``: its
  twin, and the program.

It is made for tests: it trusts its users, and is not meant to serve anything else.
"""

from . import faults
from .answer import Answer
from .call import Call, Fault
from .control import Gate, Injection
from .invocation import AskedInVain, Invocation
from .protocol import Refusal
from .request import Request
from .server import Server
from .session import Session
from .stdio_server import StdioServer
from .tasks import Task, TaskOptions

__all__ = ["Answer", "AskedInVain", "Call", "Fault", "Gate", "Injection", "Invocation", "Refusal", "Request", "Server",
           "Session", "StdioServer", "Task", "TaskOptions", "faults"]
