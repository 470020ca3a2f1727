"""The pytest fixture ``mcp_server``: a started :class:`~mcp_sync.testing.Server`, stopped after the test.

It is there as soon as the package is installed; nothing has to be imported::

    def test_the_page_shows_the_new_colour(mcp_server, client):
        mcp_server.add("docs://config", "blue")
        ...
"""

from typing import Iterator

import pytest

from .server import Server


@pytest.fixture
def mcp_server() -> Iterator[Server]:
    """A Model Context Protocol server of this test's own, listening at ``mcp_server.url``."""
    with Server() as server:
        yield server
