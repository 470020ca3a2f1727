"""Which watched URIs a notice means, however it spells them."""

from typing import List, Tuple

import pytest
from rawserver import Outcome

from mcp_sync.uris import Matcher, canonical, parents

SAME: "List[Tuple[str, ...]]" = [
    ("docs://service/config", "DOCS://service/config", "docs://Service/config", "docs://service/config/"),
    ("http://example.com", "http://example.com/", "HTTP://EXAMPLE.com:80/", "http://example.com:/"),
    ("https://example.com/a", "https://example.com:443/a", "https://EXAMPLE.COM/a/"),
    ("wss://h/a", "wss://h:443/a"),
    ("http://user@h/a", "http://user@H:80/a"),
    ("http://[::1]/a", "http://[::1]:80/a"),
    ("file:///a/b", "file:/a/b", "file://localhost/a/b", "FILE:///a/b/"),
    ("docs://h/a b", "docs://h/a%20b"),
    ('docs://h/{"x"}<y>', "docs://h/%7B%22x%22%7D%3Cy%3E", "docs://h/%7b%22x%22%7d%3cy%3e"),
    ("docs://h/世界", "docs://h/%E4%B8%96%E7%95%8C", "docs://h/%e4%b8%96%e7%95%8c"),
    ("http://müller.example/a", "http://xn--mller-kva.example/a", "http://M%C3%BCLLER.example/a"),
    ("docs://h/%7Euser", "docs://h/~user"),
    ("docs://h/%61%2Fb", "docs://h/a%2fb"),
    ("docs://h/a/../b", "docs://h/b", "docs://h/./b", "docs://h/b/.", "docs://h/x/%2E%2E/b"),
    ("docs://h/../b", "docs://h/b"),
    ("docs://h/a/..?q=/../x", "docs://h?q=/../x", "docs://h/?q=/../x"),
    ("users/me", "users/me/"),
    ("urn:isbn:1", "URN:isbn:1"),
    ("mailto:x", "MAILTO:x"),
]


@pytest.mark.parametrize("spellings", SAME, ids=lambda spellings: spellings[0])
def test_spellings_of_one_uri_match_each_other(spellings: "Tuple[str, ...]") -> None:
    for watched in spellings:
        matcher = Matcher([watched])
        for named in spellings:
            assert matcher.concerned(named) == (watched,), (watched, named)


@pytest.mark.parametrize(
    "watched, named",
    [
        ("docs://h/a", "docs://h/b"),
        ("docs://h/a", "docs://h/A"),
        ("docs://h/a", "other://h/a"),
        ("docs://h/a", "docs://g/a"),
        ("http://h/a", "http://h:8080/a"),
        ("http://h/a", "https://h/a"),
        ("http://h:443/a", "http://h/a"),
        ("docs://h:80/a", "docs://h/a"),
        ("docs://h/a%2Fb", "docs://h/c/b"),
        ("docs://h/a%2Fb", "docs://h/a/b"),
        ("docs://h/abc", "docs://h/ab"),
        ("docs://h/ab", "docs://h/abc"),
        ("docs://h/a/b", "docs://h/a"),
        ("urn:x:y", "urn:x"),
        ("urn:x", "urn:x:y"),
        ("users/me", "users"),
        ("file:///", "docs:///"),
    ],
)
def test_another_uri_is_another_one(watched: str, named: str) -> None:
    assert Matcher([watched]).concerned(named) == ()


@pytest.mark.parametrize(
    "watched, named",
    [
        ("docs://h/a", "docs://h/a/b/c"),
        ("docs://h/a/", "docs://h/a/b"),
        ("docs://h/a", "docs://h/a#part"),
        ("docs://h/a", "docs://h/a?page=2"),
        ("docs://h/a", "docs://h/a/b?page=2#part"),
        ("docs://h/a?page=2", "docs://h/a?page=2#part"),
        ("docs://h", "docs://h/a/b"),
        ("DOCS://H/a b", "docs://h/a%20b/c"),
        ("file:///", "file:///etc/hosts"),
        ("file:///etc", "file:///etc/hosts"),
        ("users", "users/me"),
        ("users/me", "users/me/name"),
    ],
)
def test_a_notice_about_a_part_is_one_about_the_whole(watched: str, named: str) -> None:
    assert Matcher([watched]).concerned(named) == (watched,)


def test_the_parents_of_a_uri_are_these() -> None:
    assert list(parents("docs://h/a/b?q#f")) == ["docs://h/a/b?q", "docs://h/a/b", "docs://h/a", "docs://h"]
    assert list(parents("file:///a/b")) == ["file:///a", "file:///"]
    assert list(parents("a/b/c")) == ["a/b", "a"]
    assert list(parents("urn:x")) == []
    assert list(parents("")) == []


def test_two_spellings_that_are_both_watched_are_both_concerned() -> None:
    matcher = Matcher(["docs://h/a", "DOCS://H/a/", "docs://h"])
    assert matcher.concerned("docs://h/a/b") == ("docs://h/a", "DOCS://H/a/", "docs://h")


def test_the_canonical_spelling_of_a_canonical_spelling_is_itself() -> None:
    for spellings in SAME:
        for uri in spellings:
            assert canonical(canonical(uri)) == canonical(uri)


@pytest.mark.parametrize(
    "odd",
    [
        "",
        " ",
        "/",
        "//",
        ":",
        "://",
        "a:",
        "%",
        "%zz",
        "100%",
        "docs://",
        "docs:///",
        "docs://[",
        "docs://h:99999999/",
        "http://" + "ä" * 100 + "/x",
        "http://.ä./x",
        "\ud800",
        "docs://h/\r\nx",
        "=?base64?x?=",
        "docs://h/" + "a/" * 5000,
        "docs://h/" + "../" * 5000,
    ],
)
def test_anything_can_be_watched_and_matches_itself(odd: str) -> None:
    assert Matcher([odd]).concerned(odd) == (odd,)
    Matcher(["docs://h/a"]).concerned(odd)
    assert canonical(canonical(odd)) == canonical(odd)


def test_a_notice_that_names_a_monster_is_dealt_with_in_linear_time() -> None:
    matcher = Matcher(["docs://h/a", "docs://h/a/b"])
    for tail in ("/x" * 1000000, "/.." * 100000, "/%2e" * 100000, "#" * 100000, "?" + "/" * 100000):
        named = "docs://h/a" + tail
        expected = ("docs://h/a",) if ".." not in tail else ()
        assert Outcome(lambda: matcher.concerned(named)).value() == expected, tail[:4]
