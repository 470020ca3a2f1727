"""The official Python SDK's ``MCPServer`` over streamable HTTP, or over standard input and output.

Arguments: port, or ``stdio``; path of the JSON file of documents.
"""
import sys

from documents import GUIDES, Documents, die_with_parent
from mcp.server.caching import CacheHint
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.server.mcpserver.resources import FunctionResource


def build(documents):
    server = MCPServer(
        "interop-official-python",
        version="1.0",
        instructions="Documents that change while you look at them.",
        log_level="WARNING",
        cache_hints={"resources/list": CacheHint(ttl_ms=0, scope="public")},
    )

    async def note_sessions(ctx, call_next):
        if ctx.method == "notifications/initialized":
            documents.note("session")
        return await call_next(ctx)

    server.middleware.append(note_sessions)

    async def text_of(uri):
        try:
            return await documents.read(uri)
        except KeyError:
            raise ResourceNotFoundError("No such document: " + uri) from None

    def offer(uri):
        async def read():
            return await text_of(uri)

        name = uri.rsplit("/", 1)[-1]
        server.add_resource(
            FunctionResource(uri=uri, name=name, title=name.capitalize(), mime_type="text/markdown", fn=read)
        )

    for uri in documents.listed():
        offer(uri)

    @server.resource(GUIDES + "{name}", name="guide", title="Guides", mime_type="text/markdown")
    async def guide(name: str) -> str:
        return await text_of(GUIDES + name)

    @server.tool()
    async def set_text(uri: str, text: str, ctx: Context) -> str:
        documents.set_text(uri, text)
        await ctx.notify_resource_updated(uri)
        return "changed"

    @server.tool()
    async def touch(uri: str, ctx: Context) -> str:
        await ctx.notify_resource_updated(uri)
        return "announced"

    @server.tool()
    async def add_document(uri: str, text: str, ctx: Context) -> str:
        documents.set_text(uri, text)
        offer(uri)
        await ctx.notify_resources_changed()
        return "added"

    @server.tool()
    async def count_reads(uri: str) -> str:
        return str(documents.reads[uri])

    return server


if __name__ == "__main__":
    built = build(Documents(sys.argv[2]))
    if sys.argv[1] == "stdio":
        built.run("stdio")
    else:
        die_with_parent()
        built.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
