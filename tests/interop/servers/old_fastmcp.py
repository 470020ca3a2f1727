"""The ``FastMCP`` class of the official Python SDK 1.x, any release of it: what old deployments run.

Arguments: ``stdio``, ``sse`` or ``streamable-http``; port (with stdio, any); path of the JSON file of documents; and
perhaps ``--subscribe``. As it comes, this class has no ``resources/subscribe``, so its resources have to be polled.
With ``--subscribe`` the SDK's own decorators for it are used on the server within, and the same server announces its
changes.
"""
import sys

import mcp.types
from documents import GUIDES, Documents, die_with_parent
from mcp.server.fastmcp import FastMCP
from mcp.server.fastmcp.exceptions import ResourceError
from mcp.server.fastmcp.resources import FunctionResource


def build(documents, port, subscribing):
    server = FastMCP("interop-old-fastmcp", port=port, host="127.0.0.1", log_level="WARNING")
    within = server._mcp_server
    within.instructions = "Documents that change while you look at them."  # 1.2 has no parameter for it, nor sends it
    subscribers = {}

    async def began(_):
        documents.note("session")

    within.notification_handlers[mcp.types.InitializedNotification] = began

    async def text_of(uri):
        try:
            return await documents.read(uri)
        except KeyError:
            raise ResourceError("Unknown resource: " + uri) from None

    def offer(uri):
        async def read():
            return await text_of(uri)

        name = uri.rsplit("/", 1)[-1]
        server.add_resource(FunctionResource(uri=uri, name=name, mime_type="text/markdown", fn=read))

    for uri in documents.listed():
        offer(uri)

    @server.resource(GUIDES + "{name}", name="guide", mime_type="text/markdown")
    async def guide(name: str) -> str:
        return await text_of(GUIDES + name)

    @server.tool()
    async def touch(uri: str) -> str:
        for session in list(subscribers.get(uri, ())):
            try:
                await session.send_resource_updated(mcp.types.AnyUrl(uri))
            except Exception:  # a session that is over
                subscribers[uri].discard(session)
        return "announced"

    @server.tool()
    async def add_document(uri: str, text: str) -> str:
        documents.set_text(uri, text)
        offer(uri)
        if subscribing:
            await within.request_context.session.send_resource_list_changed()
        return "added"

    if subscribing:

        @within.subscribe_resource()
        async def subscribe(uri) -> None:
            subscribers.setdefault(str(uri), set()).add(within.request_context.session)

        @within.unsubscribe_resource()
        async def unsubscribe(uri) -> None:
            subscribers.get(str(uri), set()).discard(within.request_context.session)

        make_options = within.create_initialization_options

        def options_that_say_so(*args, **kwargs):
            options = make_options(*args, **kwargs)
            # The SDK says False whether there is a handler or not.
            options.capabilities.resources = mcp.types.ResourcesCapability(subscribe=True, listChanged=True)
            return options

        within.create_initialization_options = options_that_say_so
    return server


if __name__ == "__main__":
    transport, port, path = sys.argv[1:4]
    if transport != "stdio":
        die_with_parent()
    build(Documents(path), int(port), "--subscribe" in sys.argv[4:]).run(transport=transport)
