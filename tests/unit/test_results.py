"""What users receive: right values from right answers, and no exception from wrong ones."""

import base64
import copy
import datetime
import gc
import pickle
import time
import weakref
from typing import Any, Dict, List
from unittest import mock

import pytest

from mcp_sync._deadline import monotonic
from mcp_sync.errors import ProtocolError
from mcp_sync.notices import ResourceUpdated, ToolsListChanged
from mcp_sync.results import (
    BlobResourceContents,
    DiscoverResult,
    Implementation,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
    list_from_pages,
)

URI = "docs://x"


class Clock:
    """A clock that stands still."""

    def __init__(self, now: float = 130.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def read(raw: Any, clock: Any = monotonic) -> ReadResourceResult:
    return ReadResourceResult.from_wire(raw, URI, 100.0, 101.0, 1700000000.0, clock)


def part(raw: Any) -> Any:
    return read({"contents": [raw]}).contents[0]


ODD: "List[Any]" = [None, True, False, 0, -1, 1.5, float("nan"), "", "text", [], [1], {}, {"a": 1}, 10**30]

# -- content -----------------------------------------------------------------------------------------------------------


def test_a_text_is_read() -> None:
    raw = {
        "resultType": "complete",
        "ttlMs": 60000,
        "cacheScope": "public",
        "contents": [{"uri": "docs://x/1", "mimeType": "text/plain", "text": "blå 世界", "_meta": {"a": 1}}],
    }
    result = read(raw, Clock())
    assert (result.uri, result.text, result.mime_type) == (URI, "blå 世界", "text/plain")
    assert result.data == "blå 世界".encode("utf-8")
    assert (result.ttl, result.scope, result.stale, result.age) == (60.0, "public", False, 30.0)
    assert result.read_at == datetime.datetime(2023, 11, 14, 22, 13, 20, tzinfo=datetime.timezone.utc)
    assert result.contents == (TextResourceContents("docs://x/1", "blå 世界", "text/plain"),)
    assert result.contents[0].raw["_meta"] == {"a": 1}
    assert result.raw == raw


def test_several_parts_are_kept_in_order_and_the_first_counts() -> None:
    result = read({"contents": [{"uri": "a", "blob": "AQI="}, {"uri": "b", "text": "t"}, {"uri": "c", "text": "u"}]})
    assert [part.uri for part in result.contents] == ["a", "b", "c"]
    assert (result.data, result.text, result.mime_type) == (b"\x01\x02", "t", None)


def test_no_part_is_no_text_and_no_bytes() -> None:
    result = read({"contents": []})
    assert (result.contents, result.data, result.mime_type, result.last_modified) == ((), b"", None, None)
    with pytest.raises(ProtocolError, match=r"docs://x holds no text \(it is empty\)"):
        result.text
    with pytest.raises(ProtocolError, match=r"only bytes: use .data"):
        read({"contents": [{"uri": URI, "blob": ""}]}).text


@pytest.mark.parametrize("raw", [None, [], "text", 1, {}, {"contents": None}, {"contents": {}}, {"contents": "x"}])
def test_a_result_without_contents_is_refused(raw: Any) -> None:
    with pytest.raises(ProtocolError, match='without a list of "contents"'):
        read(raw)


@pytest.mark.parametrize("raw", [{}, {"uri": URI}, {"text": None}, {"blob": 7}, None, "text", 3, []])
def test_contents_that_hold_nothing_are_refused(raw: Any) -> None:
    with pytest.raises(ProtocolError, match="without text or blob"):
        read({"contents": [raw]})
    assert [part.uri for part in read({"contents": [raw, {"uri": "b", "text": ""}]}).contents] == ["b"]


def test_a_part_without_a_uri_has_that_which_was_asked_for() -> None:
    assert part({"text": "x"}).uri == URI
    assert part({"blob": "", "uri": None}).uri == URI
    assert part({"text": "x", "uri": ""}).uri == ""


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", ["ttlMs", "cacheScope", "resultType", "_meta", "nextCursor"])
def test_a_field_of_the_wrong_type_is_absent(name: str, odd: Any) -> None:
    result = read({"contents": [], name: odd})
    assert result.ttl == (86400.0 if (name, odd) == ("ttlMs", 10**30) else 0.0)
    assert result.scope == "private"


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", ["mimeType", "annotations", "_meta", "size"])
def test_a_part_s_field_of_the_wrong_type_is_absent(name: str, odd: Any) -> None:
    one = part({"text": "x", name: odd})
    assert one.mime_type == (odd if name == "mimeType" and isinstance(odd, str) else None)
    assert one.last_modified is None


# -- blobs -------------------------------------------------------------------------------------------------------------

BYTES = bytes(range(256)) + b"\xfb\xff\xfe?"
PLAIN = base64.b64encode(BYTES).decode("ascii")
SAFE = base64.urlsafe_b64encode(BYTES).decode("ascii")


@pytest.mark.parametrize(
    "blob",
    [
        PLAIN,
        SAFE,
        PLAIN.rstrip("="),
        SAFE.rstrip("="),
        PLAIN + "==",
        "\r\n".join(PLAIN[at : at + 76] for at in range(0, len(PLAIN), 76)) + "\r\n",
        "\n".join(SAFE.rstrip("=")),
        " %s\t" % PLAIN,
    ],
    ids=["plain", "safe", "plain unpadded", "safe unpadded", "padded twice", "mime lines", "a line each", "blanks"],
)
def test_a_blob_is_decoded_in_each_way_that_it_is_written(blob: str) -> None:
    assert part({"blob": blob}).data == BYTES
    assert read({"contents": [{"blob": blob}]}).data == BYTES
    assert part({"blob": blob}).blob == blob


@pytest.mark.parametrize("length", range(7))
def test_a_blob_of_any_length_is_decoded_with_and_without_padding(length: int) -> None:
    data = b"abcdefg"[:length]
    blob = base64.b64encode(data).decode("ascii")
    assert part({"blob": blob}).data == part({"blob": blob.rstrip("=")}).data == data


@pytest.mark.parametrize("blob", ["A", "AAAAA", "not base64!", "AA=A", "QQ==QQ==", "世界", "%%%%", "{}", "\x00"])
def test_a_broken_blob_is_an_error_on_access_and_not_before(blob: str) -> None:
    result = read({"contents": [{"uri": "docs://y", "blob": blob}]})
    with pytest.raises(ProtocolError, match="the blob of docs://y is not base64: "):
        result.data
    assert len(result.version) == 16


def test_a_blob_is_not_shown_whole() -> None:
    assert "AAAA" not in repr(part({"blob": "A" * 1000}))


# -- versions ----------------------------------------------------------------------------------------------------------


def test_equal_content_is_one_version_whatever_else_the_answer_says() -> None:
    one = read({"contents": [{"uri": "a", "text": "x"}], "ttlMs": 1, "_meta": {"a": 1}})
    two = read({"_meta": {}, "contents": [{"text": "x", "uri": "a"}], "ttlMs": 2})
    assert one.version == two.version
    assert len(one.version) == 16 and int(one.version, 16) >= 0


@pytest.mark.parametrize(
    "contents",
    [
        [],
        [{"uri": "a", "text": "y"}],
        [{"uri": "b", "text": "x"}],
        [{"uri": "a", "blob": "x"}],
        [{"uri": "a", "text": "x", "mimeType": "text/plain"}],
        [{"uri": "a", "text": "x"}, {"uri": "b", "text": ""}],
        [{"uri": "a", "text": "x", "odd": float("nan")}],
        [{"uri": "a", "text": "\ud800"}],
    ],
)
def test_other_content_is_another_version(contents: Any) -> None:
    assert read({"contents": contents}).version != read({"contents": [{"uri": "a", "text": "x"}]}).version


def test_the_version_is_the_same_in_every_process() -> None:
    # The digest of the content as compact JSON in a fixed order; written down, since copies of it may be kept
    # elsewhere.
    assert read({"contents": [{"uri": "a", "text": "x"}]}).version == "99e2d833cf5f1013"


# -- age and label -----------------------------------------------------------------------------------------------------


def test_a_stale_copy_is_the_same_copy_labelled() -> None:
    result = read({"contents": [{"uri": "a", "text": "x"}]})
    stale = result.as_stale()
    assert (stale.stale, result.stale) == (True, False)
    assert (stale.text, stale.version, stale.started, stale == result) == ("x", result.version, result.started, True)
    assert stale.as_stale() is stale


def test_age_counts_from_the_start_of_the_read_and_is_never_negative() -> None:
    clock = Clock(100.0)
    result = read({"contents": []}, clock)
    assert result.age == 0.0
    clock.now = 163.5
    assert result.age == 63.5
    clock.now = 90.0
    assert result.age == 0.0


def test_results_cannot_be_changed() -> None:
    result = read({"contents": [{"uri": "a", "text": "x"}]})
    for item, name in ((result, "stale"), (result, "uri"), (result.contents[0], "text")):
        with pytest.raises(AttributeError):
            setattr(item, name, "y")


VALUES: List[Any] = [
    read({"contents": [{"uri": "a", "text": "x"}]}),
    TextResourceContents("a", "x"),
    BlobResourceContents("a", "AA=="),
    ResourceUpdated("a"),
    ToolsListChanged(),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_leave_it_to_others_whether_these_are_equal_to_them(value: Any) -> None:
    assert value == mock.ANY and mock.ANY == value
    assert value != "a" and value.__eq__("a") is NotImplemented


def test_values_are_shown_and_matched_by_the_names_of_their_parts() -> None:
    assert repr(ResourceUpdated("a")) == "ResourceUpdated(uri='a')"
    assert repr(ToolsListChanged()) == "ToolsListChanged()"
    assert [type(value).__match_args__ for value in VALUES[1:]] == [
        ("uri", "text", "mime_type", "raw"),
        ("uri", "blob", "mime_type", "raw"),
        ("uri",),
        (),
    ]
    for value in VALUES:
        assert type(value)(*[getattr(value, name) for name in type(value).__match_args__]) == value


def test_a_program_can_keep_something_of_its_own_for_as_long_as_a_result_is_kept() -> None:
    result = read({"contents": [{"uri": "a", "text": "x"}]})
    reference = weakref.ref(result)
    assert reference() is result and pickle.loads(pickle.dumps(result)) == result.as_stale() == result
    del result
    gc.collect()
    assert reference() is None


def test_what_is_done_to_the_raw_form_of_one_result_is_not_done_to_others() -> None:
    def server_says() -> ReadResourceResult:
        return read({"contents": [{"uri": "a", "text": "x"}], "_meta": {"server": {"name": "s"}}})

    before = server_says()
    before.raw["_meta"]["server"]["name"] = "mine"
    assert before.raw["_meta"] == server_says().raw["_meta"] == {"server": {"name": "s"}}


def test_a_result_that_a_server_makes_big_is_not_kept_for_the_next() -> None:
    class Meta(dict):  # type: ignore[type-arg]
        pass

    meta = Meta(big="x" * 1000000)
    reference = weakref.ref(meta)
    result = read({"contents": [{"uri": "a", "text": "x"}], "_meta": meta})
    assert len(result.raw["_meta"]["big"]) == 1000000
    del result, meta
    gc.collect()
    assert reference() is None


def test_results_go_to_other_processes_and_keep_their_age_by_the_calendar() -> None:
    # Made by a clock that no other process has, of a machine that was started a long time ago.
    contents = (TextResourceContents("a", "x"), BlobResourceContents("b", "AA=="))
    result = ReadResourceResult(
        raw={"contents": []},
        started=1e9,
        received=1e9 + 2.0,
        started_at=time.time() - 3600.0,
        clock=lambda: 1e9,
        uri=URI,
        contents=contents,
        ttl=7.0,
    )
    twin = pickle.loads(pickle.dumps(result))
    assert (twin, twin.version, twin.contents, twin.ttl) == (result, result.version, contents, 7.0)
    assert twin.read_at == result.read_at
    assert 3599.0 < twin.age < 3700.0
    assert twin.received - twin.started == pytest.approx(2.0)
    assert copy.deepcopy(twin) == copy.copy(twin) == twin


def test_a_result_of_a_machine_whose_calendar_is_ahead_is_not_younger_than_now() -> None:
    result = ReadResourceResult(started_at=time.time() + 1e6, uri=URI)
    assert 0.0 <= pickle.loads(pickle.dumps(result)).age < 100.0


# -- when it was changed -----------------------------------------------------------------------------------------------

UTC = datetime.timezone.utc


@pytest.mark.parametrize(
    "text, moment",
    [
        ("2025-01-12T15:00:58Z", datetime.datetime(2025, 1, 12, 15, 0, 58, tzinfo=UTC)),
        ("2025-01-12t15:00:58z", datetime.datetime(2025, 1, 12, 15, 0, 58, tzinfo=UTC)),
        (" 2025-01-12 15:00:58 Z ", datetime.datetime(2025, 1, 12, 15, 0, 58, tzinfo=UTC)),
        ("2025-01-12T15:00:58", datetime.datetime(2025, 1, 12, 15, 0, 58, tzinfo=UTC)),
        ("2025-01-12T15:00Z", datetime.datetime(2025, 1, 12, 15, 0, tzinfo=UTC)),
        ("2025-01-12", datetime.datetime(2025, 1, 12, tzinfo=UTC)),
        ("2025-01-12T15:00:58.1Z", datetime.datetime(2025, 1, 12, 15, 0, 58, 100000, tzinfo=UTC)),
        ("2025-01-12T15:00:58.123Z", datetime.datetime(2025, 1, 12, 15, 0, 58, 123000, tzinfo=UTC)),
        ("2025-01-12T15:00:58,123456Z", datetime.datetime(2025, 1, 12, 15, 0, 58, 123456, tzinfo=UTC)),
        ("2025-01-12T15:00:58.1234567Z", datetime.datetime(2025, 1, 12, 15, 0, 58, 123456, tzinfo=UTC)),
        ("2025-01-12T17:00:58+02:00", datetime.datetime(2025, 1, 12, 15, 0, 58, tzinfo=UTC)),
        ("2025-01-12T17:00:58+0200", datetime.datetime(2025, 1, 12, 15, 0, 58, tzinfo=UTC)),
        ("2025-01-12T13:00:58-02", datetime.datetime(2025, 1, 12, 15, 0, 58, tzinfo=UTC)),
        ("yesterday", None),
        ("", None),
        ("2025-13-12T15:00:58Z", None),
        ("2025-01-12T25:00:58Z", None),
        ("2025-01-12T15:00:60Z", None),
        ("2025-01-12T15:00:58+99:00", None),
        ("0000-01-01", None),
        ("1736694058", None),
        ("２０２５-01-12", None),
        (1736694058, None),
        (None, None),
    ],
)
def test_the_moment_of_the_last_change_is_read_alike_by_every_python(text: Any, moment: Any) -> None:
    assert part({"text": "x", "annotations": {"lastModified": text}}).last_modified == moment


def test_a_resource_changed_when_its_newest_part_did() -> None:
    days = ["2025-01-11", None, "2025-01-13T00:00:00+01:00", "2025-01-12"]
    result = read({"contents": [{"text": "x", "annotations": {"lastModified": day}} for day in days]})
    assert result.last_modified == datetime.datetime(2025, 1, 12, 23, tzinfo=UTC)


# -- the catalog -------------------------------------------------------------------------------------------------------


def catalog(*pages: "Dict[str, Any]", cls: Any = ListResourcesResult) -> Any:
    return list_from_pages(cls, [(page, 110.0 + at) for at, page in enumerate(pages)], 100.0, 1700000000.0, Clock())


def test_a_resource_is_read() -> None:
    raw = {
        "uri": URI,
        "name": "x",
        "title": "The X",
        "description": "d",
        "mimeType": "text/plain",
        "size": 7,
        "annotations": {"lastModified": "2025-01-12"},
        "icons": [],
    }
    resource = Resource.from_wire(raw)
    assert resource == Resource(URI, "x", "The X", "d", "text/plain", 7)
    assert resource is not None and resource.last_modified is not None and resource.raw == raw


@pytest.mark.parametrize("raw", [None, [], "x", 1, {}, {"name": "x"}, {"uri": None}, {"uri": 7}])
def test_what_has_no_uri_is_no_resource(raw: Any) -> None:
    assert Resource.from_wire(raw) is None
    assert ResourceTemplate.from_wire(raw) is None


@pytest.mark.parametrize("odd", ODD)
def test_a_resource_s_field_of_the_wrong_type_is_absent(odd: Any) -> None:
    names = ["name", "title", "description", "mimeType", "size", "annotations"]
    raw: "Dict[str, Any]" = dict.fromkeys(names, odd)
    text = odd if isinstance(odd, str) else None
    whole = odd if isinstance(odd, int) and not isinstance(odd, bool) else None
    assert Resource.from_wire(dict(raw, uri=URI)) == Resource(URI, text or "", text, text, text, whole)
    assert ResourceTemplate.from_wire(dict(raw, uriTemplate="x{y}")) == ResourceTemplate(
        "x{y}", text or "", text, text, text
    )


def test_pages_are_joined_and_each_uri_comes_once() -> None:
    result = catalog(
        {"resources": [{"uri": "a"}, {"uri": "b"}, {"uri": ""}], "nextCursor": "1"},
        {"resources": [{"uri": "b"}, {"uri": "c"}, {"uri": ""}, "junk", {}]},
    )
    assert result.uris == ("a", "b", "", "c")
    assert [resource.uri for resource in result] == list(result.uris) and len(result) == 4
    assert "nextCursor" not in result.raw
    assert result.content() == [{"uri": "a"}, {"uri": "b"}, {"uri": ""}, {"uri": "c"}]
    assert (result.age, result.received) == (30.0, 111.0)


def test_templates_are_joined_likewise() -> None:
    result = catalog(
        {"resourceTemplates": [{"uriTemplate": "a{x}"}, {"uriTemplate": ""}]},
        {"resourceTemplates": [{"uriTemplate": "a{x}", "name": "again"}, {"uriTemplate": "b"}]},
        cls=ListResourceTemplatesResult,
    )
    assert [template.uri_template for template in result] == ["a{x}", "", "b"]
    assert len(result) == 3 and len(result.content()) == 3


def test_a_list_is_current_no_longer_than_its_most_short_lived_page() -> None:
    pages = [{"resources": [], "ttlMs": ttl} for ttl in (60000, 5000, 60000)]
    # The second page came one second before the last: four seconds of its five are left.
    assert catalog(*pages).ttl == 4.0
    assert catalog({"resources": [], "ttlMs": 1000}, {"resources": []}).ttl == 0.0
    assert catalog({"resources": [], "ttlMs": 500}, {"resources": [], "ttlMs": 9000}).ttl == 0.0


@pytest.mark.parametrize(
    "scopes, scope",
    [
        (["public", "public"], "public"),
        (["public", "private"], "private"),
        (["private", "public"], "private"),
        (["public", None], "private"),
        ([None], "private"),
        (["public"], "public"),
    ],
)
def test_a_list_is_public_only_if_every_page_is(scopes: "List[Any]", scope: str) -> None:
    assert catalog(*[{"resources": [], "cacheScope": scope} for scope in scopes]).scope == scope


@pytest.mark.parametrize("page", [{}, {"resources": None}, {"resources": {}}, {"resourceTemplates": []}])
def test_a_page_without_a_list_is_refused(page: "Dict[str, Any]") -> None:
    with pytest.raises(ProtocolError, match='without a list of "resources"'):
        catalog({"resources": []}, page)


# -- the server --------------------------------------------------------------------------------------------------------


def discover(raw: Any) -> DiscoverResult:
    return DiscoverResult.from_wire(raw, 100.0, 101.0, 1700000000.0, Clock())


def test_a_server_s_description_of_itself_is_read() -> None:
    result = discover(
        {
            "supportedVersions": ["2026-07-28", "2025-11-25"],
            "capabilities": {"resources": {"subscribe": True, "listChanged": True}, "tools": {}},
            "instructions": "be kind",
            "ttlMs": 1000,
            "cacheScope": "public",
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "n", "version": "1", "title": "N"}},
        }
    )
    assert result.supported_versions == ("2026-07-28", "2025-11-25")
    assert (result.can_subscribe, result.can_list_changed) == (True, True)
    assert (result.instructions, result.ttl, result.scope) == ("be kind", 1.0, "public")
    assert result.server_info == Implementation("n", "1", "N")


@pytest.mark.parametrize("odd", ODD)
def test_of_a_bad_description_the_wrong_fields_are_absent(odd: Any) -> None:
    result = discover(dict.fromkeys(["supportedVersions", "capabilities", "instructions", "_meta"], odd))
    assert result.supported_versions == ()
    assert (result.can_subscribe, result.can_list_changed) == (False, False)
    assert result.instructions == (odd if isinstance(odd, str) else None)
    assert result.server_info == Implementation()
    result = discover({"capabilities": {"resources": odd}, "_meta": {"io.modelcontextprotocol/serverInfo": odd}})
    assert (result.can_subscribe, result.server_info) == (False, Implementation())
    result = discover({"capabilities": {"resources": {"subscribe": odd, "listChanged": odd}}})
    assert result.can_subscribe is result.can_list_changed is (odd is True)


@pytest.mark.parametrize("raw", [None, [], "x", 1])
def test_a_description_that_is_no_object_is_refused(raw: Any) -> None:
    with pytest.raises(ProtocolError, match="no object"):
        discover(raw)


def test_a_blob_and_a_text_are_two_kinds() -> None:
    assert isinstance(part({"blob": ""}), BlobResourceContents)
    assert isinstance(part({"text": "", "blob": ""}), TextResourceContents)
