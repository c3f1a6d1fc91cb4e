"""Identities: RFC 8785, and what call ids, cache keys and idempotency keys depend on."""

import json
import struct
from enum import StrEnum
from typing import Any, cast

import orjson
import pytest

from toolcrib.contracts import (
    InvalidInput,
    cache_key,
    call_id,
    canonical,
    content_hash,
    digest,
    hash_call,
    idempotency_key,
)
from toolcrib.contracts.base.identity import is_simple

NUMBERS = [
    ("0000000000000000", "0"),
    ("8000000000000000", "0"),
    ("0000000000000001", "5e-324"),
    ("8000000000000001", "-5e-324"),
    ("7fefffffffffffff", "1.7976931348623157e+308"),
    ("ffefffffffffffff", "-1.7976931348623157e+308"),
    ("4340000000000000", "9007199254740992"),
    ("c340000000000000", "-9007199254740992"),
    ("4430000000000000", "295147905179352830000"),
    ("44b52d02c7e14af5", "9.999999999999997e+22"),
    ("44b52d02c7e14af6", "1e+23"),
    ("44b52d02c7e14af7", "1.0000000000000001e+23"),
    ("444b1ae4d6e2ef4e", "999999999999999700000"),
    ("444b1ae4d6e2ef4f", "999999999999999900000"),
    ("444b1ae4d6e2ef50", "1e+21"),
    ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
    ("3eb0c6f7a0b5ed8d", "0.000001"),
    ("41b3de4355555553", "333333333.3333332"),
    ("41b3de4355555554", "333333333.33333325"),
    ("41b3de4355555555", "333333333.3333333"),
    ("41b3de4355555556", "333333333.3333334"),
    ("41b3de4355555557", "333333333.33333343"),
    ("becbf647612f3696", "-0.0000033333333333333333"),
    ("43143ff3c1cb0959", "1424953923781206.2"),
]
"""RFC 8785, appendix B: bits of a double, and how it is written."""


@pytest.mark.requirement("contracts.canonical")
@pytest.mark.parametrize(("bits", "text"), NUMBERS)
def test_a_number_is_written_as_appendix_b_of_rfc_8785_says(bits: str, text: str):
    (number,) = struct.unpack(">d", bytes.fromhex(bits))

    assert canonical(number).decode() == text


@pytest.mark.requirement("contracts.canonical")
def test_the_sample_of_rfc_8785_has_its_canonical_form():
    value = json.loads(
        r"""{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
             "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}"""
    )

    assert canonical(value).decode() == (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        r'"string":"€$\u000f\nA' + r"""'B\"\\\\\"/"}"""
    )


@pytest.mark.requirement("contracts.canonical")
def test_keys_are_sorted_by_utf_16_code_units_so_supplementary_characters_stand_before_the_end_of_the_plane():
    value = {"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\u0080": 6, "\u00f6": 7}

    ordered = json.loads(canonical(value), object_pairs_hook=list)

    assert [key for key, _ in ordered] == ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]


class Stage(StrEnum):
    WON = "won"


@pytest.mark.requirement("contracts.canonical")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": [True, None]}, {"b": [True, None], "a": 1}),
        (1, 1.0),
        (0, -0.0),
        (2**53, 2.0**53),
        (10**20, 1e20),
        ([1, "x"], (1, "x")),
        ("won", Stage.WON),
        ({"won": "won"}, {Stage.WON: Stage.WON}),
    ],
)
def test_equal_values_have_equal_bytes(one: Any, other: Any):
    assert canonical(one) == canonical(other)


@pytest.mark.requirement("contracts.canonical_exact")
@pytest.mark.parametrize("number", [2**53 + 1, 2**60, 2**63 - 1, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**300])
def test_a_large_integer_keeps_every_digit(number: int):
    assert canonical(number).decode() == str(number)
    assert canonical([number, 0.5]).decode() == f"[{number},0.5]"


def nested(levels: int, core: Any) -> Any:
    for _ in range(levels):
        core = [core]
    return core


@pytest.mark.requirement("contracts.canonical_refusal")
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "not finite"),
        ([float("inf")], "not finite"),
        (10**400, "beyond 1.8e308"),
        (-(10**5000), "beyond 1.8e308"),
        ({1: 2}, "object key 1 is not a string"),
        ({"a": {b"k": 1.5}}, "object key b'k' is not a string"),
        ({"a": {1, 2}}, "a value of type 'set' is not JSON"),
        ("\ud800", "a string holds a lone surrogate"),
        ({"\ud800": 1, "a": 2}, "a string holds a lone surrogate"),
        ([["x\udfff"]], "a string holds a lone surrogate"),
        (nested(129, 1), "nested more than 128 levels deep"),
        (nested(129, 1.5), "nested more than 128 levels deep"),
        (nested(5000, []), "nested more than 128 levels deep"),
        ({"a": nested(128, {})}, "nested more than 128 levels deep"),
    ],
    ids=range(14),
)
def test_what_is_not_json_is_refused_by_name(value: Any, message: str):
    with pytest.raises(InvalidInput, match=message):
        canonical(value)


@pytest.mark.requirement("contracts.canonical_refusal")
@pytest.mark.parametrize("core", [1, 1.5])
def test_the_deepest_nesting_allowed_is_the_same_for_every_value(core: float):
    assert canonical(nested(128, core)).decode() == "[" * 128 + str(core) + "]" * 128


@pytest.mark.requirement("contracts.call_id")
def test_a_call_id_is_the_same_in_every_release():
    assert call_id("search", "1.0.0", {"b": 1, "a": [2.5]}, "t1.c1") == "b30104abccab5da9484c75fd272f1b9d"


@pytest.mark.requirement("contracts.call_id")
def test_a_call_id_ignores_the_order_of_the_arguments_and_how_a_number_was_spelled():
    one = call_id("search", "1.0.0", {"a": 1, "b": 2.0}, "t1.c1")

    assert one == call_id("search", "1.0.0", {"b": 2, "a": 1.0}, "t1.c1")
    assert one == hash_call("search", "1.0.0", b'{"a":1,"b":2}', "t1.c1")


@pytest.mark.requirement("contracts.call_id")
@pytest.mark.parametrize(
    "other",
    [
        ("find", "1.0.0", {"a": 1}, "t1.c1"),
        ("search", "1.0.1", {"a": 1}, "t1.c1"),
        ("search", "", {"a": 1}, "t1.c1"),
        ("search", "1.0.0", {"a": "1"}, "t1.c1"),
        ("search", "1.0.0", {"a": 1}, "t1.c2"),
        ("search@1.0.0", "", {"a": 1}, "t1.c1"),
    ],
)
def test_a_call_id_changes_with_each_of_its_parts(other: tuple[str, str, Any, str]):
    assert call_id(*other) != call_id("search", "1.0.0", {"a": 1}, "t1.c1")


@pytest.mark.requirement("contracts.cache_key")
def test_a_cache_key_changes_with_each_of_its_parts_and_their_boundaries():
    keys = {
        cache_key(*parts, arguments)
        for parts in [
            ("realm", "", "search", "sha256:1"),
            ("realm2", "", "search", "sha256:1"),
            ("realm", "ann", "search", "sha256:1"),
            ("realma", "nn", "search", "sha256:1"),
            ("realm", "", "find", "sha256:1"),
            ("realm", "", "search", "sha256:2"),
            ("realm", "", "search", "sha256:"),
        ]
        for arguments in (b"{}", b'1{"a":1}', b'{"a":1}')
    }

    assert len(keys) == 21


@pytest.mark.requirement("contracts.cache_key")
def test_a_cache_key_does_not_depend_on_the_position_so_a_repeated_call_can_hit():
    key = cache_key("default", "", "search", "sha256:1", canonical({"q": "acme"}))

    assert key == cache_key("default", "", "search", "sha256:1", b'{"q":"acme"}')
    assert len(key) == 64


@pytest.mark.requirement("contracts.idempotency_key")
def test_an_idempotency_key_is_run_and_position():
    assert idempotency_key("run_1", "t3.c1") == "run_1/t3.c1"


@pytest.mark.requirement("contracts.content_hash")
def test_a_content_hash_is_the_sha_256_of_the_canonical_json():
    assert content_hash({"b": 1, "a": 2}) == "sha256:" + digest(b'{"a":2,"b":1}')
    assert digest(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.mark.requirement("registry.composition_count")
@pytest.mark.parametrize(
    ("value", "simple"),
    [
        (orjson.loads('{"a": [1, "b", null, true, {}], "c": {"d": []}}'), True),
        ("text", True),
        (2**64 - 1, True),
        (2**64, False),
        (1.5, False),
        ((1, 2), False),
        ({"é": 1}, False),
        ({1: 1}, False),
        (cast("Any", [{"a": {"b"}}]), False),
        (orjson.loads("[" * 128 + "]" * 128), True),
        (orjson.loads("[" * 129 + "]" * 129), False),
    ],
)
def test_only_what_every_encoder_writes_alike_is_simple(value: Any, simple: bool):
    assert is_simple(value) is simple
    if simple:
        assert canonical(orjson.loads(orjson.dumps(value))) == canonical(value)
