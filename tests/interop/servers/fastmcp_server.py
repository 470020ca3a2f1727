"""FastMCP over streamable HTTP. Arguments: port, path of the JSON file of documents, and perhaps ``--listen``.

As it comes, FastMCP 4.2 serves no ``subscriptions/listen``: it sends a change notice, if at all, on the answer to the
request that made the change, where nobody else hears it. So this is the server that has to be polled. With ``--listen``
the listen handler of the SDK that FastMCP is built on is added to it, and the same server announces its changes.
"""
import sys

import mcp_types
from documents import GUIDES, Documents, die_with_parent
from fastmcp import Context, FastMCP
from fastmcp.exceptions import NotFoundError
from fastmcp.resources import Resource
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ResourceUpdated


def build(documents, listening):
    server = FastMCP("interop-fastmcp", version="1.0", instructions="Documents that change while you look at them.")
    bus = InMemorySubscriptionBus()
    if listening:
        server._mcp_server.add_request_handler(
            "subscriptions/listen", mcp_types.SubscriptionsListenRequestParams, ListenHandler(bus)
        )

    async def announce(ctx, uri):
        if listening:
            await bus.publish(ResourceUpdated(uri=uri))
        else:
            params = mcp_types.ResourceUpdatedNotificationParams(uri=uri)
            await ctx.send_notification(mcp_types.ResourceUpdatedNotification(params=params))

    async def text_of(uri):
        try:
            return await documents.read(uri)
        except KeyError:
            raise NotFoundError("No such document: " + uri) from None

    def offer(uri):
        async def read() -> str:
            return await text_of(uri)

        name = uri.rsplit("/", 1)[-1]
        server.add_resource(
            Resource.from_function(read, uri, name=name, title=name.capitalize(), mime_type="text/markdown")
        )

    for uri in documents.listed():
        offer(uri)

    @server.resource(GUIDES + "{name}", name="guide", title="Guides", mime_type="text/markdown")
    async def guide(name: str) -> str:
        return await text_of(GUIDES + name)

    @server.tool
    async def set_text(uri: str, text: str, ctx: Context) -> str:
        documents.set_text(uri, text)
        await announce(ctx, uri)
        return "changed"

    @server.tool
    async def touch(uri: str, ctx: Context) -> str:
        await announce(ctx, uri)
        return "announced"

    @server.tool
    async def add_document(uri: str, text: str, ctx: Context) -> str:
        documents.set_text(uri, text)
        offer(uri)
        if listening:
            await bus.publish(ResourcesListChanged())
        else:
            await ctx.send_notification(mcp_types.ResourceListChangedNotification())
        return "added"

    @server.tool
    async def count_reads(uri: str) -> str:
        return str(documents.reads[uri])

    return server


if __name__ == "__main__":
    die_with_parent()
    build(Documents(sys.argv[2]), "--listen" in sys.argv[3:]).run(
        transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False, log_level="warning"
    )
