import re
import stat
from datetime import timedelta
from pathlib import Path

import pytest

from tests.twins import ManualClock
from toolcrib.contracts import OWNER, InvalidInput, InvalidSettings, Principal, Unauthenticated
from toolcrib.infrastructure.store import MemoryStore
from toolcrib.interfaces.server import KeyRing, read_pepper

PEPPER = b"p" * 32


@pytest.fixture
async def store() -> MemoryStore:
    opened = MemoryStore()
    await opened.open()
    return opened


@pytest.mark.requirement("server.keys")
async def test_a_key_stands_for_the_principal_and_realm_it_was_issued_for(store: MemoryStore) -> None:
    ring = KeyRing(store.api_keys, PEPPER, ManualClock())
    text = await ring.issue(Principal(id="ada", realm="lab"))
    assert re.fullmatch(r"tcb_[0-9a-f]{12}_[A-Za-z0-9_-]{43}", text)
    holder = await ring.authenticate(text)
    assert (holder.id, holder.realm) == ("ada", "lab")


@pytest.mark.requirement("server.keys")
async def test_the_store_has_a_keyed_hash_and_four_characters_but_no_key(store: MemoryStore) -> None:
    text = await KeyRing(store.api_keys, PEPPER, ManualClock()).issue(OWNER)
    key = await store.api_keys.get(text.split("_")[1])
    assert key is not None
    secret = text.split("_", 2)[2]
    assert secret not in repr(key)
    assert key.last_four == text[-4:]
    with pytest.raises(Unauthenticated):
        await KeyRing(store.api_keys, b"q" * 32, ManualClock()).authenticate(text)


@pytest.mark.requirement("server.keys")
async def test_wrong_unknown_and_malformed_keys_are_refused_in_the_same_words(store: MemoryStore) -> None:
    ring = KeyRing(store.api_keys, PEPPER, ManualClock())
    text = await ring.issue(OWNER)
    flipped = text[:-1] + ("A" if text[-1] != "A" else "B")
    unknown = "tcb_000000000000" + text[16:]
    messages: set[str] = set()
    for wrong in (flipped, unknown, "tcb_", "", text + "\n", "é" * 60):
        with pytest.raises(Unauthenticated) as refusal:
            await ring.authenticate(wrong)
        messages.add(str(refusal.value))
    assert len(messages) == 1


@pytest.mark.requirement("server.keys")
async def test_a_key_is_refused_from_its_expiry_on(store: MemoryStore) -> None:
    clock = ManualClock()
    ring = KeyRing(store.api_keys, PEPPER, clock)
    text = await ring.issue(OWNER, expires_at=clock.now() + timedelta(seconds=60))
    assert (await ring.authenticate(text)).id == "owner"
    clock.advance(60)
    with pytest.raises(Unauthenticated, match="expired; issue a new one"):
        await ring.authenticate(text)


@pytest.mark.requirement("server.pepper")
def test_the_pepper_is_made_once_beside_the_database_for_its_owner_only(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/new/crib.db"
    pepper = read_pepper(url, {}, keys=0)
    file = tmp_path / "new" / "crib-pepper"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert read_pepper(url, {}, keys=0) == pepper
    assert len(pepper) == 64
    assert [entry.name for entry in file.parent.iterdir()] == ["crib-pepper"]


@pytest.mark.requirement("server.pepper")
def test_a_pepper_that_others_can_read_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/crib.db"
    read_pepper(url, {}, keys=0)
    (tmp_path / "crib-pepper").chmod(0o640)
    with pytest.raises(InvalidSettings, match="mode 640"):
        read_pepper(url, {}, keys=0)


@pytest.mark.requirement("server.pepper")
def test_two_processes_that_start_together_agree_on_the_pepper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/crib.db"
    first = read_pepper(url, {}, keys=0)

    def not_yet(_: Path) -> bool:
        return False

    monkeypatch.setattr(Path, "exists", not_yet)
    assert read_pepper(url, {}, keys=0) == first


@pytest.mark.requirement("server.pepper")
def test_the_environment_gives_the_pepper_if_it_is_long_enough() -> None:
    assert read_pepper("postgresql://db", {"TOOLCRIB_PEPPER": "x" * 32}, keys=2) == b"x" * 32
    with pytest.raises(InvalidSettings, match="at least 32"):
        read_pepper("postgresql://db", {"TOOLCRIB_PEPPER": "short"}, keys=0)


@pytest.mark.requirement("server.pepper")
def test_without_a_file_beside_the_store_the_pepper_must_be_given() -> None:
    with pytest.raises(InvalidSettings, match="set TOOLCRIB_PEPPER"):
        read_pepper("postgresql://db", {}, keys=0)
    assert read_pepper("memory://", {}, keys=0) != read_pepper("memory://", {}, keys=0)


@pytest.mark.requirement("server.pepper")
def test_keys_without_the_pepper_they_were_made_with_are_a_fault_of_the_settings(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/crib.db"
    with pytest.raises(InvalidSettings, match="bring it back"):
        read_pepper(url, {}, keys=3)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.requirement("server.scopes")
async def test_a_key_has_the_scopes_that_it_was_given(store: MemoryStore) -> None:
    ring = KeyRing(store.api_keys, PEPPER, ManualClock())
    text = await ring.issue(OWNER, scopes=("ai://tools/crm/*/execute", "ai://runs/*"))

    assert (await ring.authenticate(text)).grants == ("ai://tools/crm/*/execute", "ai://runs/*")
    assert (await ring.authenticate(await ring.issue(OWNER))).grants == OWNER.grants


@pytest.mark.requirement("server.scopes")
@pytest.mark.parametrize("scope", ["", "tools/*", "ai://", "ai://tools", "ai://tools/a b/*", "https://tools/*"])
async def test_a_scope_that_is_no_pattern_is_refused(store: MemoryStore, scope: str) -> None:
    with pytest.raises(InvalidInput, match="is not a security URI pattern"):
        await KeyRing(store.api_keys, PEPPER, ManualClock()).issue(OWNER, scopes=(scope,))


@pytest.mark.requirement("server.scopes")
async def test_a_key_cannot_have_more_than_its_principal(store: MemoryStore) -> None:
    ring = KeyRing(store.api_keys, PEPPER, ManualClock())
    ada = Principal(id="ada", grants=("ai://tools/crm/*",))

    await ring.authenticate(await ring.issue(ada, scopes=("ai://tools/crm/search/execute",)))
    for scope in ("ai://tools/*", "ai://*"):
        with pytest.raises(InvalidInput, match="so its keys cannot have it"):
            await ring.issue(ada, scopes=(scope,))
