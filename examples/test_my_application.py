"""How to test a program that uses mcp_sync: ``python -m pytest examples/test_my_application.py``.

The fixture ``mcp_server`` comes with the package. Faults are values that are given to the server.
"""

from typing import Any

from mcp_sync import Client, MCPSyncError
from mcp_sync.testing import faults


class Greeter:
    """The application: it greets as a document on the server says."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def greet(self, name: str) -> str:
        try:
            greeting = self.client.read_resource("docs://greeting", stale_ok=True).text
        except MCPSyncError:
            greeting = "Hello"  # never read, and not to be had: better than nothing
        return "%s, %s!" % (greeting, name)


def test_it_greets_as_the_document_says_and_follows_its_changes(mcp_server: Any) -> None:
    mcp_server.add("docs://greeting", "Good morning")
    with Client(mcp_server.url) as client, client.watch("docs://greeting") as watch:
        watch.wait_until_current(timeout=10)
        assert Greeter(client).greet("Ada") == "Good morning, Ada!"
        mcp_server.update("docs://greeting", "Good evening")
        assert next(watch.changes(timeout=10)).kind == "updated"
        assert Greeter(client).greet("Ada") == "Good evening, Ada!"


def test_it_goes_on_greeting_while_the_server_is_away(mcp_server: Any) -> None:
    mcp_server.add("docs://greeting", "Good morning")
    with Client(mcp_server.url) as client:
        assert Greeter(client).greet("Ada") == "Good morning, Ada!"
        mcp_server.kill()
        assert Greeter(client).greet("Ada") == "Good morning, Ada!"


def test_it_has_a_greeting_of_its_own_if_the_server_never_answered(mcp_server: Any) -> None:
    mcp_server.inject(faults.Status(503), times=None)
    with Client(mcp_server.url) as client:
        assert Greeter(client).greet("Ada") == "Hello, Ada!"
