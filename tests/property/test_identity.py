"""Properties of canonical JSON: stable, order-free, the same on both paths, and never anything but InvalidInput."""

import json
import random
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib.contracts import InvalidInput, call_id, canonical
from toolcrib.contracts.base.identity import _is_plain, _pieces  # pyright: ignore[reportPrivateUsage] - two paths, compared

valid_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
integers = st.integers() | st.integers(-(2**70), 2**70) | st.sampled_from([2**53 + 1, 2**63, -(2**63) - 1, 2**64])
floats = st.floats(allow_nan=False, allow_infinity=False)


def json_of(scalars: st.SearchStrategy[Any], keys: st.SearchStrategy[str] = valid_text) -> st.SearchStrategy[Any]:
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
        max_leaves=15,
    )


values = json_of(st.none() | st.booleans() | integers | floats | valid_text)
plain_values = json_of(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | valid_text,
    st.text(st.characters(max_codepoint=127), max_size=4),
)


@pytest.mark.requirement("contracts.canonical_stable")
@given(values)
def test_canonical_bytes_read_and_written_again_stay_the_same(value: Any):
    written = canonical(value)

    assert canonical(json.loads(written)) == written


@pytest.mark.requirement("contracts.canonical_stable")
@given(json_of(st.none() | st.booleans() | integers | st.floats(-(2**53), 2**53) | valid_text))
def test_canonical_json_means_what_was_given(value: Any):
    assert json.loads(canonical(value)) == value


@pytest.mark.requirement("contracts.canonical_stable")
@given(plain_values)
def test_the_fast_path_agrees_with_the_slow_one_on_all_plain_values(value: Any):
    assert _is_plain(value, 128)

    assert canonical(value).decode() == "".join(_pieces(value, 128))


def shuffled(value: Any, order: random.Random) -> Any:
    if isinstance(value, list):
        return [shuffled(item, order) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        items = [(key, shuffled(item, order)) for key, item in cast("dict[str, Any]", value).items()]
        order.shuffle(items)
        return dict(items)
    return value


@pytest.mark.requirement("contracts.canonical", "contracts.call_id")
@given(values, st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter(value: Any, order: random.Random):
    other = shuffled(value, order)

    assert canonical(other) == canonical(value)
    assert call_id("t", "1.0.0", other, "t1.c1") == call_id("t", "1.0.0", value, "t1.c1")


@pytest.mark.requirement("contracts.canonical")
@given(st.dictionaries(valid_text, st.none(), max_size=8))
def test_keys_stand_in_the_order_of_their_utf_16_code_units(value: dict[str, None]):
    keys = [key for key, _ in json.loads(canonical(value), object_pairs_hook=list)]

    assert keys == sorted(value, key=lambda key: key.encode("utf-16-be"))


@pytest.mark.requirement("contracts.canonical_exact")
@given(integers, integers)
def test_two_integers_share_their_bytes_only_if_they_are_equal(one: int, other: int):
    assert (canonical(one) == canonical(other)) is (one == other)


anything = json_of(
    st.text() | st.floats() | integers | st.binary(max_size=2) | st.sets(integers, max_size=1), st.text()
)


@pytest.mark.requirement("contracts.canonical_refusal")
@settings(max_examples=300)
@given(anything | st.dictionaries(st.none() | st.integers(), st.none()))
def test_nothing_but_invalid_input_is_raised_and_what_passes_is_json(value: Any):
    try:
        written = canonical(value)
    except InvalidInput:
        return
    json.loads(written.decode())
