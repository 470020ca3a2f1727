"""The frontmatter of a SKILL.md: what is read without a parser is what a parser reads, and the rest needs one."""

import json
import sys
from typing import Any, Dict

import pytest

from mcp_sync import NotSupported, ProtocolError, frontmatter

pytestmark = pytest.mark.usefixtures("no_garbage_of_others")

PLAIN: Dict[str, Any] = {
    "name: pdf\ndescription: Extract, fill and assemble PDF documents\n": {
        "name": "pdf",
        "description": "Extract, fill and assemble PDF documents",
    },
    "# a note\n\nname:   pdf  \nlicense: Apache-2.0\n": {"name": "pdf", "license": "Apache-2.0"},
    'name: "a: \\u00fc # \\n"\nmetadata: {"version": "1.0", "deep": [1, 2.5, null, true]}\nempty: []\n': {
        "name": "a: ü # \n",
        "metadata": {"version": "1.0", "deep": [1, 2.5, None, True]},
        "empty": [],
    },
    "a: it's a 3:2 ratio, isn't it?\nb: über\nc: a#b\nd: 3D models\ne: <b>\nf: a:b\n": {
        "a": "it's a 3:2 ratio, isn't it?",
        "b": "über",
        "c": "a#b",
        "d": "3D models",
        "e": "<b>",
        "f": "a:b",
    },
    # YAML 1.2: what it looks like, and not what YAML 1.1 made of it.
    "a: yes\nb: off\nc: 010\nd: 2026-01-01\ne: 1:30\nf: 1_000\ng: y\n": {
        "a": "yes",
        "b": "off",
        "c": 10,
        "d": "2026-01-01",
        "e": "1:30",
        "f": "1_000",
        "g": "y",
    },
    "a: true\nb: FALSE\nc: null\nd: 12\ne: -3\nf: 1.50\ng: 1e3\nh: 0x1F\ni: 0o17\nj: +4\nk: .5\nl: tRUE\n": {
        "b": False,
        "a": True,
        "c": None,
        "d": 12,
        "e": -3,
        "f": 1.5,
        "g": 1000,
        "h": 31,
        "i": 15,
        "j": 4,
        "k": 0.5,
        "l": "tRUE",
    },
}

PARSED: Dict[str, Any] = {
    "name: pdf\ndescription: >-\n  Extract, fill\n  and assemble\n": {
        "name": "pdf",
        "description": "Extract, fill and assemble",
    },
    "a: |\n  one\n  --- two\n": {"a": "one\n--- two\n"},
    "a: one\n  two\n": {"a": "one two"},
    "a: 'it''s'\nb: x # a note\nc:\nd: ~\n": {"a": "it's", "b": "x", "c": None, "d": None},
    "metadata:\n  version: '2.1'\n  tags: [a, b]\n  on: no\n": {
        "metadata": {"version": "2.1", "tags": ["a", "b"], "on": "no"}
    },
    "allowed-tools:\n- Read\n- Bash(git:*)\n": {"allowed-tools": ["Read", "Bash(git:*)"]},
    "1: a\ntrue: b\n~: c\n1.5: d\n": {"1": "a", "true": "b", "null": "c", "1.5": "d"},
    "a: {<<: x}\nb: =\nc: [2026-01-01, 1:30, 010]\nd: -1\n": {
        "a": {"<<": "x"},
        "b": "=",
        "c": ["2026-01-01", "1:30", 10],
        "d": -1,
    },
}

REFUSED = [
    "just a text\n",
    "- a list\n",
    "",
    "a: b: c\n",
    "a: [1, 2\n",
    "a: 1\na: 2\n",
    "a: {b: 1, b: 2}\n",
    "a: &x [1]\nb: *x\n",
    "a: !!python/object:os.system x\n",
    "a: !!map x\n",
    "a: !!seq {}\n",
    "? [1, 2]\n: x\n",
    "a: \x07\n",
    "a: %s\n" % ("[" * 5000),
    "a: %s\n" % ("x" * 70000),
]


def read(yaml: str) -> Any:
    return frontmatter.frontmatter_of("---\n%s---\nthe text" % yaml, "skill://x/SKILL.md")


@pytest.mark.parametrize("yaml", PLAIN)
def test_what_most_skills_have_is_read_without_a_parser(yaml: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert frontmatter.same(read(yaml), PLAIN[yaml])


@pytest.mark.parametrize("yaml", list(PLAIN) + list(PARSED))
def test_a_parser_reads_the_same_and_more(yaml: str) -> None:
    pytest.importorskip("yaml")
    expected = {**PLAIN, **PARSED}[yaml]
    assert frontmatter.same(frontmatter._parsed(yaml, "x"), expected)
    assert frontmatter.same(read(yaml), expected)


@pytest.mark.parametrize(
    "yaml",
    list(PARSED)
    + ["a: x # note\n", "a: b: c\n", 'a: {"b": 1, "b": 2}\n', 'a: {"b": NaN}\n', 'a: "x" # note\n', "a: x\ty\n"],
)
def test_without_a_parser_what_takes_one_says_what_to_install(yaml: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(NotSupported, match=r"pip install mcp-sync-client\[skills\]"):
        read(yaml)


@pytest.mark.parametrize("yaml", REFUSED, ids=lambda yaml: yaml[:20])
def test_what_makes_no_sense_is_refused(yaml: str) -> None:
    pytest.importorskip("yaml")
    with pytest.raises(ProtocolError):
        read(yaml)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_and_a_byte_order_mark_do_not_matter(end: str) -> None:
    text = "\ufeff" + end.join(["--- ", "name: pdf", "", "license: MIT", "---\t", "The text.", "---", "More."])
    assert frontmatter.frontmatter_of(text, "x") == {"name": "pdf", "license": "MIT"}
    assert frontmatter.body_of(text, "x") == end.join(["The text.", "---", "More."])


def test_a_text_may_end_with_its_frontmatter() -> None:
    assert frontmatter.body_of("---\na: b\n---", "x") == ""


@pytest.mark.parametrize("text", ["", "name: x\n---\n", "---\nname: x\n", " ---\nname: x\n---\n", "----\na: b\n----\n", "---"])
def test_a_text_without_frontmatter_is_refused(text: str) -> None:
    with pytest.raises(ProtocolError, match="skill://x/SKILL.md does not begin with frontmatter"):
        frontmatter.frontmatter_of(text, "skill://x/SKILL.md")


@pytest.mark.parametrize(
    "one, other, expected",
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        ("1", 1, False),
        (None, False, False),
        (12345678901234567890, 12345678901234567168.0, True),
        (10**400, 10**400 + 1, True),
        ({"a": [1, {"b": None}]}, {"a": [1.0, {"b": None}]}, True),
        ({"a": None}, {}, False),
        ([1, 2], [2, 1], False),
        ([1], [1, 2], False),
        ({"a": 1}, [1], False),
        (float("nan"), 0.0, False),
    ],
)
def test_values_are_compared_as_json(one: Any, other: Any, expected: bool) -> None:
    assert frontmatter.same(one, other) is frontmatter.same(other, one) is expected


def test_a_number_that_is_too_long_to_be_read_is_no_trouble() -> None:
    assert json.dumps(read("a: %s\n" % ("9" * 6000))) == '{"a": Infinity}'
