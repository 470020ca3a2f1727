"""Results: whatever a server says in them, there is a result whose every field can be asked for, or an error of the package."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .grammar import VALUES, results
from .reading import RESULTS, corpus, read_result, spoilt_everywhere

pytestmark = pytest.mark.usefixtures("no_garbage_of_others")

KEPT = corpus("results")


@pytest.mark.parametrize("kind", sorted(RESULTS))
@pytest.mark.parametrize("name, data", KEPT, ids=[name for name, _ in KEPT])
def test_what_is_kept_is_read_where_it_belongs_and_does_no_harm_elsewhere(name: str, data: bytes, kind: str) -> None:
    read = read_result(kind, json.loads(data.decode("utf-8")))
    if name == kind + ".json":
        assert not isinstance(read, str), read


@pytest.mark.parametrize("kind", sorted(RESULTS))
def test_what_is_kept_is_read_or_refused_whichever_part_of_it_is_wrong(kind: str) -> None:
    for spoilt in spoilt_everywhere(json.loads(dict(KEPT)[kind + ".json"].decode("utf-8"))):
        read_result(kind, spoilt)


@given(results())
def test_any_spoilt_result_is_read_or_refused(kind_and_value: Any) -> None:
    kind, value = kind_and_value
    read_result(kind, value)


@given(st.sampled_from(sorted(RESULTS)), VALUES)
def test_any_value_is_a_result_or_refused(kind: str, value: Any) -> None:
    read_result(kind, value)
