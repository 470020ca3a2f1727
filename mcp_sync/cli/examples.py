"""What ``--help`` teaches below the options: examples, and what the output means."""

__all__ = ["EXAMPLES"]

#: By the name of the command; empty for that of all.
EXAMPLES = {
    "": """\
examples:
  mcp-sync demo                                              see it work, without a server of your own
  mcp-sync info http://127.0.0.1:8000/mcp
  mcp-sync list http://127.0.0.1:8000/mcp
  mcp-sync read http://127.0.0.1:8000/mcp docs://service/config > config.txt
  mcp-sync watch http://127.0.0.1:8000/mcp --all
  mcp-sync call http://127.0.0.1:8000/mcp search query=colour
  mcp-sync list -- python my_server.py                       a server that speaks over stdio is started, and ended

'mcp-sync COMMAND --help' tells more about each.""",
    "info": """\
examples:
  mcp-sync info https://docs.example.com/mcp
  mcp-sync info --json https://docs.example.com/mcp | jq .notifies
  MCP_SYNC_BEARER=... mcp-sync info https://docs.example.com/mcp""",
    "list": """\
examples:
  mcp-sync list https://docs.example.com/mcp
  mcp-sync list --templates https://docs.example.com/mcp
  mcp-sync list --tools https://docs.example.com/mcp
  mcp-sync list --json https://docs.example.com/mcp | jq -r '.resources[].uri'

On a terminal, long cells are shortened in the middle; elsewhere they are whole.""",
    "read": """\
examples:
  mcp-sync read https://docs.example.com/mcp docs://service/config
  mcp-sync read https://docs.example.com/mcp docs://logo --output logo.png
  mcp-sync read --json https://docs.example.com/mcp docs://service/config | jq -r .version

What is printed is exactly what the resource holds; several are printed one after the other, and nothing is printed
unless all of them could be read. With --json it is one object, or a list of objects if several URIs are given:
uri, text or blob (base64), mime_type, version (a digest: equal versions hold equal content), read_at, age (seconds),
last_modified, stale, and more_contents if the resource has further parts.""",
    "watch": """\
examples:
  mcp-sync watch https://docs.example.com/mcp docs://service/config
  mcp-sync watch https://docs.example.com/mcp --all --poll-interval 5
  mcp-sync watch https://docs.example.com/mcp docs://a docs://b | while read -r line; do ...; done
  mcp-sync watch --count 1 --duration 60 https://docs.example.com/mcp docs://a && deploy
  mcp-sync watch --all -- npx -y @modelcontextprotocol/server-everything stdio

On a terminal, one table shows each resource, whether the copy held here is current, its age, its version, and what
keeps it current: listening (the server tells of changes), polling (it does not, so it is read at intervals), or nothing
(not connected: changes go unnoticed until it is). Otherwise one line is printed for each change, at once: time,
kind, URI and version, separated by tabs. Kinds: updated, removed, appeared, catalog (the list of resources changed)
and, with --initial, current. A server that goes away is waited for, except at the start.""",
    "call": """\
examples:
  mcp-sync call https://docs.example.com/mcp search query=colour limit=5
  mcp-sync call https://docs.example.com/mcp search --arguments '{"query": "colour", "tags": ["a", "b"]}'
  mcp-sync call https://docs.example.com/mcp search --arguments @search.json limit=10
  mcp-sync call --json https://docs.example.com/mcp search query=colour | jq .structuredContent
  mcp-sync call --timeout 60 --max-timeout 600 https://docs.example.com/mcp train epochs=90
  mcp-sync call add a=1 b=2 -- python my_server.py

A value is read as the tool's inputSchema says: whole numbers, numbers, true and false, lists and objects as JSON, and
all else as text. What the tool takes is told if something is missing or unknown. The text that it answers is printed,
and what it logs goes to standard error. Ctrl-C cancels the call; the server is told.

On a terminal, progress is a line that is redrawn (a nicer one with the extra mcp-sync-client[cli]), and what the server
asks for is asked of you. Elsewhere the exit code is 8 then; what it asks for, and how to go on, is told on standard
error, and with --json on standard output.""",
    "prompt": """\
examples:
  mcp-sync prompt https://docs.example.com/mcp review language=python
  mcp-sync prompt https://docs.example.com/mcp review code="$(cat program.py)" | llm
  mcp-sync prompt --json https://docs.example.com/mcp review language=python | jq -r '.messages[].content.text'

The texts of its messages are printed; if there are several, each below the name of who says it.""",
    "demo": """\
example:
  mcp-sync demo

Starts a server in this process and a client beside it, lets happen what happens in real life, and checks each step.
The exit code is 0 only if every step happened.""",
}
