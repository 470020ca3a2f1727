"""Skills: resources, and the entries that are made of them (the extension io.modelcontextprotocol/skills)."""

import hashlib

import pytest

from mcp_sync.testing import Server

SKILLS = "io.modelcontextprotocol/skills"
ROOT = "skill://acme/refunds"
MATTER = {"name": "refunds", "description": 'Pay "back": all of it', "metadata": {"version": 2}}


@pytest.fixture(params=["modern", "legacy"])
def call(request, peers, legacy):
    """Sends a request to a server of one era and gives the reply."""
    def made(server, method, params=None):
        return (peers(server) if request.param == "modern" else legacy(server)).call(method, params)

    made.era = request.param
    return made


@pytest.fixture
def server(call):
    with Server(eras=[call.era]) as started:
        yield started


def measured(uri, content):
    return {"uri": uri, "digest": "sha256:" + hashlib.sha256(content).hexdigest(), "size": len(content)}


def test_a_skill_is_resources_and_an_entry(server, call):
    server.add_skill(ROOT, MATTER, "# Refunds\n", {"examples/mail.md": "caf\u00e9", "a.bin": b"\x00"})
    text = ('---\nname: "refunds"\ndescription: "Pay \\"back\\": all of it"\nmetadata: {"version": 2}\n---\n\n# Refunds\n')
    read = call(server, "resources/read", {"uri": ROOT + "/SKILL.md"}).result["contents"][0]
    assert read == {"uri": ROOT + "/SKILL.md", "mimeType": "text/markdown", "text": text}
    listed = call(server, "resources/list").result["resources"]
    assert [(one["uri"], one["name"]) for one in listed] == [
        (ROOT + "/SKILL.md", "refunds"), (ROOT + "/examples/mail.md", "mail.md"), (ROOT + "/a.bin", "a.bin")]
    assert listed[0]["description"] == MATTER["description"]
    entry = {"uri": ROOT + "/SKILL.md", "frontmatter": MATTER, "resources": [
        measured(ROOT + "/SKILL.md", text.encode("ascii")), measured(ROOT + "/examples/mail.md", b"caf\xc3\xa9"),
        measured(ROOT + "/a.bin", b"\x00")]}
    assert call(server, "skills/list").result["skills"] == [entry]
    assert call(server, "skills/get", {"uri": ROOT + "/SKILL.md"}).result["skill"] == entry


def test_entries_have_pages_and_hints_and_follow_what_changes(peers):
    with Server(page_size=1, ttl_ms=7) as server:
        server.add_skill(ROOT, MATTER, files={"x.md": "1"})
        server.add_skill("skill://other", {"name": "other"}, dynamic=True)
        peer = peers(server)
        first = peer.call("skills/list").result
        second = peer.call("skills/list", {"cursor": first["nextCursor"]}).result
        assert (first["ttlMs"], first["cacheScope"], second["skills"][0]["resources"]) == (7, "private", "dynamic")
        server.update(ROOT + "/x.md", "2")
        got = peer.call("skills/get", {"uri": ROOT + "/SKILL.md"}).result
        assert got["ttlMs"] == 7 and got["skill"]["resources"][1] == measured(ROOT + "/x.md", b"2")
        server.remove(ROOT + "/x.md")
        assert len(peer.call("skills/get", {"uri": ROOT + "/SKILL.md"}).result["skill"]["resources"]) == 1


def test_a_skill_may_be_unlisted_or_lie_or_be_gone(server, call):
    server.add_skill(ROOT, MATTER, listed=False, text="no frontmatter", raw={"odd": 1})
    assert call(server, "skills/list").result["skills"] == []
    assert call(server, "skills/get", {"uri": ROOT + "/SKILL.md"}).result["skill"] == {"odd": 1}
    assert call(server, "resources/read", {"uri": ROOT + "/SKILL.md"}).result["contents"][0]["text"] == "no frontmatter"
    assert call(server, "skills/get", {"uri": ROOT + "/OTHER.md"}).error["code"] == -32602
    server.remove_skill(ROOT)
    for uri in (ROOT + "/SKILL.md", ROOT, 7):
        assert call(server, "skills/get", {"uri": uri}).error["code"] == -32602
    assert call(server, "resources/list").result["resources"] == []
    with pytest.raises(KeyError):
        server.remove_skill(ROOT)


def test_a_directory_lists_what_is_directly_in_it(server, call):
    server.add_skill(ROOT, MATTER, files={"t/one.md": "1", "t/deep/two.md": "2", "t/deep/three.md": "3"})
    children = call(server, "resources/directory/read", {"uri": ROOT + "/t"}).result
    assert "ttlMs" not in children
    assert [(one["uri"], one["name"], one["mimeType"]) for one in children["resources"]] == [
        (ROOT + "/t/one.md", "one.md", "text/markdown"), (ROOT + "/t/deep", "deep", "inode/directory")]
    assert [one["name"] for one in call(server, "resources/directory/read", {"uri": ROOT}).result["resources"]] == [
        "refunds", "t"]
    for uri in (ROOT + "/SKILL.md", "skill://none", 7, None):
        assert call(server, "resources/directory/read", {"uri": uri}).error["code"] == -32602


def _extensions(server, call):
    if call.era == "modern":
        return call(server, "server/discover").result["capabilities"].get("extensions")
    version = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    return call(server, "initialize", version).result["capabilities"].get("extensions")


def test_the_extension_is_told_when_there_is_a_skill_or_it_is_asked_for(call, server):
    assert _extensions(server, call) is None
    assert call(server, "skills/list").error["code"] == -32601
    server.add_skill(ROOT, MATTER)
    assert _extensions(server, call) == {SKILLS: {"directoryRead": True}}
    with Server(eras=[call.era], capabilities=["skills"], directory_read=False) as flat:
        assert _extensions(flat, call) == {SKILLS: {}}
        assert call(flat, "skills/list").result["skills"] == []
        assert call(flat, "resources/directory/read", {"uri": ROOT}).error["code"] == -32601


def test_those_who_listen_hear_once_of_a_skill(peers):
    with Server() as server:
        listener = peers(server).listen(resourcesListChanged=True)
        server.wait_for_streams(1)
        server.add_skill(ROOT, MATTER, files={"x.md": "1"})
        server.remove_skill(ROOT)
        server.add_skill(ROOT, MATTER, notify=False)
        server.remove_skill(ROOT, notify=False)
        server.end_streams("result")
        heard = listener.take(4)
        assert [message.get("method") for message in heard[1:]] == ["notifications/resources/list_changed"] * 2 + [None]


def test_each_principal_sees_the_skills_that_it_may_see(peers):
    with Server(authenticate=lambda headers: headers.get("X-Who")) as server:
        server.add_skill(ROOT, MATTER)
        server.restrict(ROOT + "/SKILL.md", ["alice"])
        alice, bob = peers(server, X_Who="alice"), peers(server, X_Who="bob")
        assert len(alice.call("skills/list").result["skills"]) == 1
        assert bob.call("skills/list").result["skills"] == []
        assert bob.call("skills/get", {"uri": ROOT + "/SKILL.md"}).error["code"] == -32602


def test_what_is_made_for_each_read_has_no_digest(server, call):
    server.add_skill(ROOT, MATTER, files={"x.md": lambda principal: "now"})
    assert call(server, "skills/list").error["code"] == -32603
