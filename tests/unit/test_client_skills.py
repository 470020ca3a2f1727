"""Skills: listed without being read, read one file at a time, and only what is as the server said."""

import hashlib
from typing import Any, Dict, Iterator, List

import pytest

from mcp_sync import (
    Client,
    MessageTooLarge,
    NotSupported,
    ProtocolError,
    ResourceNotFound,
    ServerError,
    SkillEntry,
    SkillMismatch,
)
from mcp_sync.testing import Server, faults

BOUND = 20.0
ROOT = "skill://acme/refunds"
URI = ROOT + "/SKILL.md"
EMAIL = ROOT + "/examples/e-mail%20form.md"
FRONTMATTER = {"name": "refunds", "description": "How to give money back", "metadata": {"version": "2.1"}}


@pytest.fixture
def server() -> "Iterator[Server]":
    with Server() as server:
        server.add_skill(
            ROOT, FRONTMATTER, "Be kind.\n", {"examples/e-mail%20form.md": "Dear …", "logo.png": b"\x89PNG\xff"}
        )
        yield server


@pytest.fixture
def client(server: Server) -> "Iterator[Client]":
    with Client(server.url, timeout=BOUND) as client:
        yield client


def reads(server: Server) -> "List[str]":
    return [request.params["uri"] for request in server.requests if request.method == "resources/read"]


def digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


# -- listing --------------------------------------------------------------------------------------------------------------


def test_skills_are_listed_with_all_their_files_and_none_is_read(server: Server, client: Client) -> None:
    server.add_skill("skill://daily", {"name": "daily", "description": "News"}, dynamic=True)
    listed = client.list_skills()
    refunds, daily = listed
    assert (refunds.uri, refunds.root, refunds.name, refunds.description) == (URI, ROOT, "refunds", "How to give money back")
    assert refunds.frontmatter == FRONTMATTER
    assert [file.path for file in refunds.files] == ["SKILL.md", "examples/e-mail%20form.md", "logo.png"]
    assert (refunds.files[2].size, refunds.files[2].digest) == (5, digest(b"\x89PNG\xff"))
    assert (refunds.dynamic, daily.dynamic, daily.files) == (False, True, ())
    assert listed.find(URI) is refunds
    assert reads(server) == []


def test_a_server_is_not_asked_for_skills_that_it_does_not_say_it_has() -> None:
    with Server() as server, Client(server.url, timeout=BOUND) as client:
        server.add("docs://x", "x")
        for call in (client.list_skills, lambda: client.read_skill(URI), lambda: client.read_skill("refunds")):
            with pytest.raises(NotSupported, match="has no skills"):
                call()
        assert {request.method for request in server.requests} == {"server/discover"}
        # What it has not today it may have tomorrow.
        server.add_skill(ROOT, FRONTMATTER)
        assert [skill.name for skill in client.list_skills(cache_mode="refresh")] == ["refunds"]


def test_the_server_is_asked_once_whether_it_has_skills(server: Server, client: Client) -> None:
    client.list_skills()
    client.read_skill(URI)
    client.read_skill("refunds")
    assert server.count("server/discover") == 1


def entry(**changes: Any) -> "Dict[str, Any]":
    data = b"x"
    whole = {
        "uri": URI,
        "frontmatter": {"name": "refunds", "description": "d"},
        "resources": [{"uri": URI, "digest": digest(data), "size": 1}],
    }
    whole.update(changes)
    return whole


FILE = {"uri": ROOT + "/a", "digest": "sha256:" + "0" * 64, "size": 0}
SELF = {"uri": URI, "digest": "sha256:" + "0" * 64, "size": 0}


@pytest.mark.parametrize(
    "changes, reason",
    [
        ({"uri": "skill://acme/refunds"}, "its URI is not that of a SKILL.md"),
        ({"frontmatter": None}, "no name, or no description"),
        ({"frontmatter": {"name": "refunds"}}, "no name, or no description"),
        ({"frontmatter": {"name": "other", "description": "d"}}, "not that of its directory"),
        ({"resources": None}, "which files it has"),
        ({"resources": "Dynamic"}, "which files it has"),
        ({"resources": []}, "its own SKILL.md"),
        ({"resources": [FILE]}, "its own SKILL.md"),
        ({"resources": [SELF, FILE, FILE]}, "a file twice"),
        ({"resources": [SELF, "x"]}, "without its URI, digest and size"),
        ({"resources": [SELF, dict(FILE, size=None)]}, "without its URI, digest and size"),
        ({"resources": [SELF, dict(FILE, size=True)]}, "without its URI, digest and size"),
        ({"resources": [SELF, dict(FILE, size=-1)]}, "a digest or a size that is none"),
        ({"resources": [SELF, dict(FILE, digest="sha256:" + "A" * 64)]}, "a digest or a size that is none"),
        ({"resources": [SELF, dict(FILE, digest="md5:0")]}, "a digest or a size that is none"),
        ({"resources": [SELF, dict(FILE, uri="skill://acme/other/a")]}, "not in its directory"),
        ({"resources": [SELF, dict(FILE, uri=ROOT + "/../other/a")]}, "not in its directory"),
        ({"resources": [SELF, dict(FILE, uri=ROOT + "//a")]}, "not in its directory"),
    ],
)
def test_a_skill_that_must_not_be_loaded_is_left_out_and_not_read(
    server: Server, client: Client, changes: Any, reason: str
) -> None:
    server.remove_skill(ROOT)
    server.add_skill(ROOT, FRONTMATTER, raw=entry(**changes))
    listed = client.list_skills()
    assert len(listed) == 0
    (left_out,) = listed.left_out
    assert reason in left_out.reason
    with pytest.raises(ProtocolError, match=reason):
        client.read_skill(SkillEntry.from_wire(entry(**changes)))
    if "uri" not in changes:
        for skill in (URI, "refunds"):
            with pytest.raises(ProtocolError, match="must not be loaded: .*" + reason):
                client.read_skill(skill)
    assert reads(server) == []


@pytest.mark.parametrize("skills", [["x", [], {}, {"uri": 7}]])
def test_what_is_no_entry_is_skipped(server: Server, client: Client, skills: Any) -> None:
    for number, raw in enumerate(skills):
        server.add_skill("skill://s%d" % number, {"name": "s%d" % number, "description": "d"}, raw=raw)
    assert [skill.name for skill in client.list_skills()] == ["refunds"]


# -- reading --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["name", "URI", "entry"])
def test_reading_a_skill_reads_one_file(server: Server, client: Client, by: str) -> None:
    wanted: Any = {"name": "refunds", "URI": URI, "entry": client.list_skills().find(URI)}[by]
    skill = client.read_skill(wanted)
    assert (skill.uri, skill.name, skill.description) == (URI, "refunds", "How to give money back")
    assert skill.frontmatter == FRONTMATTER
    assert skill.body.strip() == "Be kind."
    assert skill.text.startswith("---\nname:")
    assert repr(skill) == "<Skill skill://acme/refunds/SKILL.md, 3 files>"
    assert reads(server) == [URI]


def test_other_files_are_read_when_they_are_asked_for(server: Server, client: Client) -> None:
    skill = client.read_skill("refunds")
    assert skill.read("logo.png") == b"\x89PNG\xff"
    assert skill.read_text("examples/e-mail form.md") == "Dear …"  # as a text names it
    assert reads(server) == [URI, ROOT + "/logo.png", EMAIL]
    for path in ("examples/e-mail%20form.md", EMAIL, "./examples/../examples//e-mail form.md"):
        assert skill.read_text(path) == "Dear …"
    with pytest.raises(ProtocolError, match="logo.png is not text"):
        skill.read_text("logo.png")


def test_a_skill_that_is_not_listed_is_read_by_its_uri(server: Server, client: Client) -> None:
    server.add_skill("github://acme/repo/hidden", {"name": "hidden", "description": "d"}, "x", listed=False)
    assert client.read_skill("github://acme/repo/hidden/SKILL.md").name == "hidden"
    with pytest.raises(ResourceNotFound, match="no skill named hidden is listed; one that is not can be read by its URI"):
        client.read_skill("hidden")


def test_a_skill_that_there_is_not_is_named(client: Client) -> None:
    with pytest.raises(ResourceNotFound, match="skill://x/SKILL.md: No skill is served") as caught:
        client.read_skill("skill://x/SKILL.md")
    assert caught.value.uri == "skill://x/SKILL.md"


def test_an_error_of_the_server_is_its_own(server: Server, client: Client) -> None:
    server.inject(faults.JsonRpcError(-32603, "broken"), method="skills/get")
    with pytest.raises(ServerError, match="broken"):
        client.read_skill(URI)


def test_of_two_skills_with_one_name_none_is_preferred(server: Server, client: Client) -> None:
    other = "skill://acme/support/refunds"
    server.add_skill(other, FRONTMATTER, "Be quick.\n")
    assert [skill.uri for skill in client.list_skills().named("refunds")] == [URI, other + "/SKILL.md"]
    with pytest.raises(ValueError, match="2 skills are named refunds; give the URI of one: " + URI):
        client.read_skill("refunds")
    assert client.read_skill(other + "/SKILL.md").body.strip() == "Be quick."


@pytest.mark.parametrize("answer", [{}, {"skill": None}, {"skill": {"uri": "skill://other/SKILL.md"}}])
def test_an_answer_about_something_else_is_refused(
    client: Client, monkeypatch: pytest.MonkeyPatch, answer: "Dict[str, Any]"
) -> None:
    client.list_skills()
    monkeypatch.setattr(client._connection, "call", lambda *args, **options: dict(answer, resultType="complete"))
    with pytest.raises(ProtocolError, match="answer to skills/get is not about " + URI):
        client.read_skill(URI)


# -- what is not as the server said ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("text, problem", [("longer", "bytes and not"), ("same length", "its digest is")])
def test_a_skill_that_changed_since_it_was_listed_is_not_used(
    server: Server, client: Client, text: str, problem: str
) -> None:
    listed = client.list_skills().find(URI)
    assert listed is not None
    good = client.read_skill(listed).text
    server.update(URI, good + "!" if text == "longer" else good.replace("kind", "evil"))
    server.forget_requests()
    with pytest.raises(SkillMismatch, match="is not what the server said of it: .*" + problem) as caught:
        client.read_skill(listed)
    assert caught.value.uri == URI
    assert reads(server) == [URI]  # once, and no other file
    assert client.read_skill(URI).text != good  # as it is now


def test_after_a_file_that_is_another_nothing_more_of_the_skill_is_read(server: Server, client: Client) -> None:
    skill = client.read_skill(URI)
    server.update(ROOT + "/logo.png", b"other")
    with pytest.raises(SkillMismatch, match="its digest is"):
        skill.read("logo.png")
    server.forget_requests()
    for path in ("examples/e-mail form.md", "SKILL.md", "logo.png"):
        with pytest.raises(SkillMismatch) as caught:
            skill.read(path)
        assert caught.value.uri == ROOT + "/logo.png"
    assert server.requests == ()


@pytest.mark.parametrize(
    "path", ["secret.txt", "../other/SKILL.md", "examples", "", "/etc/passwd", "skill://other/SKILL.md", ROOT, ROOT + "/../x"]
)
def test_a_file_that_is_not_listed_is_not_read(server: Server, client: Client, path: str) -> None:
    server.add(ROOT + "/secret.txt", "not of the skill yet")
    raw = dict(client.list_skills().skills[0].raw)
    raw["resources"] = [file for file in raw["resources"] if "secret" not in file["uri"]]
    skill = client.read_skill(SkillEntry.from_wire(raw))
    server.forget_requests()
    with pytest.raises(SkillMismatch, match="is not listed as a file of the skill"):
        skill.read(path)
    assert reads(server) == []
    assert skill.read("logo.png")  # a wrong name says nothing about the skill


@pytest.mark.parametrize(
    "said, differs",
    [
        (dict(FRONTMATTER, description="harmless"), "description differs"),
        (dict(FRONTMATTER, license="MIT"), "license differs"),
        ({"name": "refunds", "description": "How to give money back"}, "metadata differs"),
        (dict(FRONTMATTER, metadata={"version": 2.1}), "metadata differs"),
        (dict(FRONTMATTER, more=None), "a key without a value differs"),
    ],
)
def test_a_frontmatter_that_is_not_as_it_was_told_is_a_mismatch(
    server: Server, client: Client, said: Any, differs: str
) -> None:
    raw = dict(client.list_skills().skills[0].raw, frontmatter=said)
    with pytest.raises(SkillMismatch, match="the frontmatter of .* is not what the server says of it: " + differs):
        client.read_skill(SkillEntry.from_wire(raw))
    assert reads(server) == [URI]


def test_a_skill_without_frontmatter_is_a_mismatch(server: Server, client: Client) -> None:
    server.add_skill("skill://bare", {"name": "bare", "description": "d"}, text="no frontmatter")
    with pytest.raises(SkillMismatch, match="does not begin with frontmatter"):
        client.read_skill("bare")


def test_contents_that_are_not_one_file_are_a_mismatch(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = client.list_skills().find(URI)
    call = client._connection.call

    def two(method: str, *args: Any, **options: Any) -> Any:
        result = call(method, *args, **options)
        return dict(result, contents=[dict(result["contents"][0], uri="a")] * 2) if method == "resources/read" else result

    monkeypatch.setattr(client._connection, "call", two)
    with pytest.raises(SkillMismatch, match="the server sent 2 contents"):
        client.read_skill(listed)


def test_of_several_contents_the_one_that_was_asked_for_counts(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    call = client._connection.call

    def two(method: str, *args: Any, **options: Any) -> Any:
        result = call(method, *args, **options)
        if method == "resources/read":
            result = dict(result, contents=[{"uri": "skill://other", "text": "x"}] + result["contents"])
        return result

    monkeypatch.setattr(client._connection, "call", two)
    assert client.read_skill(URI).body.strip() == "Be kind."


def test_a_copy_from_memory_that_is_older_than_the_entry_is_read_again(server: Server, client: Client) -> None:
    with client.watch(URI) as watch:
        watch.wait_until_current(timeout=BOUND)
        old = client.read_resource(URI)
        # The copy is current as far as the client knows; the server changed it without a word.
        server.update(URI, old.text.replace("kind", "fair"), notify=False)
        assert client.read_skill(URI).body.strip() == "Be fair."


def test_a_file_from_memory_is_not_read_twice(server: Server, client: Client) -> None:
    with client.watch(URI) as watch:
        watch.wait_until_current(timeout=BOUND)
        server.forget_requests()
        client.read_skill(URI)
        assert reads(server) == []


# -- limits, and skills that cannot be verified ----------------------------------------------------------------------------


def big(count: int, size: int) -> "Dict[str, Any]":
    files = [dict(SELF, size=size)] + [dict(FILE, uri="%s/%d" % (ROOT, number)) for number in range(count - 1)]
    return entry(resources=files)


@pytest.mark.parametrize("count, size", [(513, 0), (1, 16 * 1024 * 1024 + 1)])
def test_a_skill_beyond_the_limits_is_refused_before_anything_is_read(
    server: Server, client: Client, count: int, size: int
) -> None:
    with pytest.raises(MessageTooLarge, match="at most 512 and 16777216 are accepted"):
        client.read_skill(SkillEntry.from_wire(big(count, size)))
    assert reads(server) == []


@pytest.mark.parametrize("count, size", [(512, 0), (1, 16 * 1024 * 1024)])
def test_a_skill_at_the_limits_is_read(server: Server, client: Client, count: int, size: int) -> None:
    with pytest.raises(SkillMismatch):  # for it is not what this test says of it
        client.read_skill(SkillEntry.from_wire(big(count, size)))
    assert reads(server) == [URI]


def test_a_skill_that_cannot_be_verified_is_read_only_if_that_is_accepted(server: Server, client: Client) -> None:
    made = {"name": "daily", "description": "News"}
    server.add_skill("skill://daily", made, "Read `today.md`.\n", {"today.md": "Rain."}, dynamic=True)
    with pytest.raises(NotSupported, match="dynamic_ok=True"):
        client.read_skill("daily")
    assert reads(server) == []
    skill = client.read_skill("daily", dynamic_ok=True)
    assert (skill.files, repr(skill)) == ((), "<Skill skill://daily/SKILL.md, dynamic>")
    server.update("skill://daily/today.md", "Sun.")
    assert skill.read_text("today.md") == "Sun."
    # Made anew for each read, so that no copy from memory is as good.
    with client.watch("skill://daily/today.md") as watch:
        watch.wait_until_current(timeout=BOUND)
        server.update("skill://daily/today.md", "Snow.", notify=False)
        assert skill.read_text("today.md") == "Snow."
    for path in ("../acme/refunds/SKILL.md", "/x", URI, ""):
        with pytest.raises(SkillMismatch):
            skill.read(path)


def test_the_frontmatter_of_a_skill_that_is_made_anew_is_verified(server: Server, client: Client) -> None:
    made = {"name": "daily", "description": "News"}
    server.add_skill("skill://daily", made, text="---\nname: daily\ndescription: Olds\n---\n", dynamic=True)
    with pytest.raises(SkillMismatch, match="description differs"):
        client.read_skill("daily", dynamic_ok=True)


def test_a_skill_that_is_made_anew_may_not_grow_without_end(server: Server, client: Client) -> None:
    made = {"name": "daily", "description": "News"}
    server.add_skill("skill://daily", made, "x", {"a": "a" * 9000000}, dynamic=True)
    skill = client.read_skill("daily", dynamic_ok=True)
    skill.read("a")
    with pytest.raises(MessageTooLarge, match="larger than 16777216 bytes in all"):
        skill.read("a")
