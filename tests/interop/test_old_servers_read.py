"""What the client reads from servers of the legacy eras, and from servers that it starts itself.

One client for each kind of server: nothing changes here.
"""
import pytest

from mcp_sync import ResourceNotFound

from .old_server import ALL, MCP_1_2

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module", params=ALL)
def read_only(request, _servers):
    """A server that nobody changes, and a client of it that is known to work."""
    server = _servers.running(request.param)
    with server.connected() as client:
        client.discover()
        yield server, client


def test_the_era_and_the_revision_are_found_out(read_only):
    server, client = read_only
    found = client.discover(cache_mode="refresh")
    assert client.protocol_version == server.kind.revision
    assert server.kind.revision in found.supported_versions
    assert found.server_info.name.startswith(("interop-", "mcp-servers/everything"))
    # The first release sends none.
    told = None if server.kind.packages == MCP_1_2 else "Documents that change while you look at them."
    assert found.instructions == told


def test_the_catalog_and_the_templates_are_listed(read_only):
    server, client = read_only
    assert set(client.list_resources().uris) == server.listed
    assert [template.uri_template for template in client.list_resource_templates()] == {
        "everything": ["demo://resource/dynamic/text/{resourceId}", "demo://resource/dynamic/blob/{resourceId}"],
    }.get(server.kind.program, ["docs://guides/{name}"])


def test_every_document_can_be_read(read_only):
    server, client = read_only
    results = {uri: client.read_resource(uri) for uri in server.texts}
    assert {uri: result.text for uri, result in results.items()} == server.texts
    assert [result.uri for result in results.values()] == list(server.texts)
    assert not any(result.stale for result in results.values())


def test_a_missing_resource_raises_not_found(read_only):
    server, client = read_only
    with pytest.raises(ResourceNotFound):
        client.read_resource(server.missing)
    assert client.read_resource(server.config).text == "retries = 3"
