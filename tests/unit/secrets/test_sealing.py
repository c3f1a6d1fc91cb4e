"""Sealing under master keys."""

import base64
import sys
from hashlib import sha256

import orjson
import pytest

from toolcrib.contracts import InvalidSettings
from toolcrib.infrastructure.secrets import MasterKeys, new_master_key
from toolcrib.infrastructure.store import SealedKey

PLACE = SealedKey("acme", "realm", "CRM_TOKEN")
VALUE = "sk-live-0123456789 ü"


def fixed(name: str) -> str:
    """A key that is the same in every process, so that the names of tests are too."""
    return f"{name}:{base64.b64encode(sha256(name.encode()).digest()).decode()}"


def keys(*entries: str) -> MasterKeys:
    found = MasterKeys.read({"TOOLCRIB_MASTER_KEYS": ",".join(entries)})
    assert found is not None
    return found


@pytest.mark.requirement("secrets.sealed")
def test_what_is_sealed_opens_again_and_looks_different_each_time() -> None:
    ring = keys(new_master_key("k1"))
    first, second = ring.seal(VALUE, PLACE, 1), ring.seal(VALUE, PLACE, 1)
    assert first != second
    assert "sk-live" not in first
    assert ring.open(first, PLACE, 1) == ring.open(second, PLACE, 1) == VALUE


@pytest.mark.requirement("secrets.sealed")
@pytest.mark.parametrize(
    ("place", "version"),
    [
        (PLACE._replace(realm="other"), 1),
        (PLACE._replace(scope="user:ann"), 1),
        (PLACE._replace(name="OTHER"), 1),
        (SealedKey("acme", "realmCRM_TOKEN", ""), 1),
        (PLACE, 2),
    ],
)
def test_a_sealed_text_opens_at_its_own_place_and_version_only(place: SealedKey, version: int) -> None:
    ring = keys(new_master_key("k1"))
    with pytest.raises(InvalidSettings, match="cannot be decrypted: the row was moved or changed"):
        ring.open(ring.seal(VALUE, PLACE, 1), place, version)


@pytest.mark.requirement("secrets.sealed")
@pytest.mark.parametrize(
    "damaged",
    [
        "",
        "[]",
        '{"version":1,"kid":',
        '{"version":1,"kid":[],"key":"","data":""}',
        '{"version":1,"kid":"k1","key":"!","data":""}',
        '{"version":1,"kid":"k1","key":"","data":""}',
        '{"version":1,"kid":"k1","key":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","data":""}',
        '{"version":2,"kid":"k1","key":"","data":""}',
    ],
)
def test_a_damaged_text_is_refused_in_words_that_say_what_to_do(damaged: str) -> None:
    for attempt in (keys(fixed("k1")).open, keys(fixed("k2"), fixed("k1")).reseal):
        with pytest.raises(InvalidSettings, match=r"'CRM_TOKEN' cannot be decrypted.*set the secret"):
            attempt(damaged, PLACE, 1)


@pytest.mark.requirement("secrets.sealed")
def test_a_value_that_was_cut_off_is_refused() -> None:
    ring = keys(fixed("k1"))
    sealed = orjson.loads(ring.seal(VALUE, PLACE, 1))
    for kept in (0, 8, 28, 36):
        with pytest.raises(InvalidSettings, match="'CRM_TOKEN' cannot be decrypted"):
            ring.open(orjson.dumps(sealed | {"data": sealed["data"][:kept]}).decode(), PLACE, 1)


@pytest.mark.requirement("secrets.rotation")
def test_the_first_key_seals_and_all_open() -> None:
    old, new = new_master_key("k1"), new_master_key("k2")
    sealed = keys(old).seal(VALUE, PLACE, 1)
    both = keys(new, old)
    assert both.open(sealed, PLACE, 1) == VALUE
    again = both.reseal(sealed, PLACE, 1)
    assert again is not None
    assert keys(new).open(again, PLACE, 1) == VALUE
    assert both.reseal(again, PLACE, 1) is None
    with pytest.raises(InvalidSettings, match="'CRM_TOKEN' was encrypted with master key 'k1', which TOOLCRIB_MASTER"):
        keys(new).open(sealed, PLACE, 1)


@pytest.mark.requirement("secrets.rotation")
def test_another_key_of_the_same_name_opens_nothing() -> None:
    sealed = keys(new_master_key("k1")).seal(VALUE, PLACE, 1)
    with pytest.raises(InvalidSettings, match="the master key of this name has changed"):
        keys(new_master_key("k1")).open(sealed, PLACE, 1)


@pytest.mark.requirement("secrets.master_keys")
def test_without_the_setting_there_are_no_keys() -> None:
    assert MasterKeys.read({}) is None
    assert MasterKeys.read({"TOOLCRIB_MASTER_KEYS": ""}) is None


@pytest.mark.requirement("secrets.master_keys")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0123456789abcdef0123456789abcdef", "entry 1 of TOOLCRIB_MASTER_KEYS is not NAME:KEY with 32 bytes"),
        (f"{fixed('k2')},k1:c2hvcnQ=", "entry 2 of TOOLCRIB_MASTER_KEYS is not NAME:KEY with 32 bytes"),
        ("k1:abcdefgh!", "entry 1 of TOOLCRIB_MASTER_KEYS is not NAME:KEY"),
        ("k1:" + "A" * 43 + "=", "entry 1 of TOOLCRIB_MASTER_KEYS is not a random key"),
        (f"{fixed('k1')},{fixed('k1')}", "has the key 'k1' twice"),
        (f"{fixed('k1')},", "entry 2"),
    ],
)
def test_weak_and_malformed_keys_are_refused_without_repeating_them(text: str, problem: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        keys(text)
    assert problem in str(caught.value)
    assert not any(entry.partition(":")[2] in str(caught.value) for entry in text.split(",") if ":" in entry)


@pytest.mark.requirement("secrets.master_keys")
def test_no_key_is_shown_in_a_representation() -> None:
    entry = new_master_key("k1")
    assert entry.partition(":")[2] not in repr(keys(entry))
    assert repr(keys(entry)) == "MasterKeys()"


@pytest.mark.requirement("secrets.master_keys")
def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(InvalidSettings, match=r"pip install 'toolcrib\[vault\]'"):
        keys(new_master_key("k1")).seal(VALUE, PLACE, 1)
