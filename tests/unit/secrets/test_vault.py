"""The vault: who gets which secret, and what becomes of it when keys and values change."""

from dataclasses import replace

import pytest

from tests.twins import AT
from toolcrib.contracts import OWNER, Conflict, InvalidInput, InvalidSettings, NotFound, Principal, Unavailable
from toolcrib.infrastructure.secrets import EnvironmentSecrets, MasterKeys, Safe, ScopedSecrets, Vault, new_master_key
from toolcrib.infrastructure.store import MemoryStore, SealedKey, SealedValue, SealedValues

ANN = Principal(id="ann")
BEN = Principal(id="ben")
ELSEWHERE = Principal(id="ann", realm="other")
AGENT = Principal(id="helper", kind="agent", acts_for="ann")
OLD, NEW = new_master_key("k1"), new_master_key("k2")


def safe(*entries: str, values: SealedValues | None = None) -> Safe:
    keys = MasterKeys.read({"TOOLCRIB_MASTER_KEYS": ",".join(entries)})
    return Safe(MemoryStore().sealed if values is None else values, keys)


@pytest.mark.requirement("secrets.scopes")
async def test_a_users_secret_comes_before_the_realms_and_that_before_everybodys() -> None:
    vault = Vault(safe(OLD))
    assert await vault.find("KEY", ANN) is None
    await vault.set("KEY", "of-all", scope="org", principal=OWNER, at=AT)
    assert [await vault.find("KEY", who) for who in (ANN, BEN, ELSEWHERE)] == ["of-all"] * 3
    await vault.set("KEY", "of-realm", scope="realm", principal=OWNER, at=AT)
    assert [await vault.find("KEY", who) for who in (ANN, BEN, ELSEWHERE)] == ["of-realm", "of-realm", "of-all"]
    await vault.set("KEY", "of-ann", scope="user", principal=ANN, at=AT)
    found = [await vault.find("KEY", who) for who in (ANN, AGENT, BEN, ELSEWHERE)]
    assert found == ["of-ann", "of-ann", "of-realm", "of-all"]


@pytest.mark.requirement("secrets.scopes")
async def test_a_list_has_what_a_principal_can_use_and_no_values() -> None:
    vault = Vault(safe(OLD))
    for scope in ("org", "realm", "user"):
        await vault.set("KEY", "value-0123", scope=scope, principal=ANN, at=AT)
    await vault.set("A", "value-4567", scope="user", principal=BEN, at=AT)
    entry = await vault.set("KEY", "value-8901", scope="realm", principal=BEN, at=AT)

    assert (entry.version, entry.made_by, entry.created_at) == (2, "ben", AT)
    listed = await vault.list(ANN)
    assert [(each.name, each.scope, each.version) for each in listed] == [
        ("KEY", "user", 1),
        ("KEY", "realm", 2),
        ("KEY", "org", 1),
    ]
    assert [each.name for each in await vault.list(BEN)] == ["A", "KEY", "KEY"]
    assert [each.scope for each in await vault.list(ELSEWHERE)] == ["org"]
    assert "value" not in repr(listed)


@pytest.mark.requirement("secrets.scopes")
async def test_a_removed_secret_is_gone_at_once_and_only_in_its_scope() -> None:
    vault = Vault(safe(OLD))
    await vault.set("KEY", "of-realm", scope="realm", principal=ANN, at=AT)
    await vault.set("KEY", "of-ann", scope="user", principal=ANN, at=AT)
    await vault.remove("KEY", scope="user", principal=ANN)
    assert await vault.find("KEY", ANN) == "of-realm"
    with pytest.raises(NotFound, match="there is no secret 'KEY' of scope 'user'"):
        await vault.remove("KEY", scope="user", principal=ANN)


@pytest.mark.requirement("secrets.scopes")
@pytest.mark.parametrize("name", ["", "9A", "A-B", "A" * 129, "a\n", "${secret:A}"])
async def test_a_name_that_no_reference_could_hold_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="is not a valid secret name"):
        await Vault(safe(OLD)).set(name, "value", scope="realm", principal=ANN, at=AT)


@pytest.mark.requirement("secrets.scopes")
@pytest.mark.parametrize("value", ["", "x" * 65_537])
async def test_an_empty_and_an_endless_value_are_refused(value: str) -> None:
    with pytest.raises(InvalidInput, match=rf"secret 'KEY' has {len(value)} characters; give 1 to 65536"):
        await Vault(safe(OLD)).set("KEY", value, scope="realm", principal=ANN, at=AT)


@pytest.mark.requirement("secrets.master_keys")
async def test_without_master_keys_nothing_is_kept_and_the_setting_is_named() -> None:
    vault = Vault(safe())
    assert await vault.find("KEY", ANN) is None
    with pytest.raises(InvalidSettings, match="none are set: set TOOLCRIB_MASTER_KEYS to what `toolcrib secret new"):
        await vault.set("KEY", "value", scope="realm", principal=ANN, at=AT)
    with pytest.raises(InvalidSettings, match="TOOLCRIB_MASTER_KEYS"):
        await vault.rotate()


@pytest.mark.requirement("secrets.rotation")
async def test_rotation_leaves_nothing_under_an_older_key_in_any_realm() -> None:
    values = MemoryStore().sealed
    for who in (ANN, ELSEWHERE):
        await Vault(safe(OLD, values=values)).set("KEY", who.realm, scope="user", principal=who, at=AT)
    vault = Vault(safe(NEW, OLD, values=values))
    await vault.set("NEW", "value", scope="realm", principal=ANN, at=AT)

    assert await vault.rotate() == 2
    assert await vault.rotate() == 0
    alone = Vault(safe(NEW, values=values))
    assert [await alone.find("KEY", who) for who in (ANN, ELSEWHERE)] == ["default", "other"]
    assert [entry.version for entry in await alone.list(ANN)] == [1, 1]


class Busy:
    """Sealed values of which one changes whenever somebody wants to seal it anew."""

    def __init__(self, values: SealedValues, *, under: MasterKeys) -> None:
        self._values = values
        self._under = under
        self.put, self.get, self.list, self.remove = values.put, values.get, values.list, values.remove

    async def reseal(self, old: SealedValue, sealed: str) -> bool:
        """Another process sets the value in between."""
        del sealed
        text = self._under.seal("newer", old.place, old.version + 1)
        await self._values.put(replace(old, version=old.version + 1, sealed=text))
        return False


@pytest.mark.requirement("secrets.rotation")
async def test_what_changes_during_a_rotation_is_not_left_under_an_older_key_without_a_word() -> None:
    for entry, ends in ((NEW, True), (OLD, False)):
        values = MemoryStore().sealed
        await Vault(safe(OLD, values=values)).set("KEY", "value", scope="realm", principal=ANN, at=AT)
        under = MasterKeys.read({"TOOLCRIB_MASTER_KEYS": entry})
        assert under is not None
        vault = Vault(safe(NEW, OLD, values=Busy(values, under=under)))
        if ends:
            assert await vault.rotate() == 1
        else:
            with pytest.raises(Unavailable, match="'KEY' changed during the rotation; rotate again"):
                await vault.rotate()
        assert await vault.find("KEY", ANN) == "newer"


@pytest.mark.requirement("secrets.sealed")
async def test_a_row_that_was_copied_to_another_realm_does_not_open_there() -> None:
    values = MemoryStore().sealed
    vault = Vault(safe(OLD, values=values))
    await vault.set("KEY", "of-acme", scope="realm", principal=ANN, at=AT)
    (row,) = await values.list("default")
    await values.put(replace(row, place=SealedKey("other", "realm", "KEY")))
    with pytest.raises(InvalidSettings, match="'KEY' cannot be decrypted"):
        await vault.find("KEY", ELSEWHERE)


@pytest.mark.requirement("secrets.sealed")
async def test_of_two_who_change_a_value_that_both_have_read_one_is_refused() -> None:
    kept, place = safe(OLD), SealedKey("default", "connection:ann", "crm")
    assert await kept.put(place, "one", after=0, made_by="ann", at=AT) == 1
    assert await kept.put(place, "two", after=1, made_by="ann", at=AT) == 2
    with pytest.raises(Conflict):
        await kept.put(place, "other two", after=1, made_by="ann", at=AT)
    assert await kept.take(place) == ("two", 2)


@pytest.mark.requirement("secrets.references")
async def test_references_of_either_kind_resolve() -> None:
    vault = Vault(safe(OLD))
    await vault.set("KEY", "from-vault", scope="realm", principal=ANN, at=AT)
    secrets = ScopedSecrets(EnvironmentSecrets({"KEY": "from-env"}, ("*",)), vault)
    assert await secrets.resolve("${env:KEY}", ANN) == "from-env"
    assert await secrets.resolve("${secret:KEY}", ANN) == "from-vault"
    assert await secrets.resolve("${secret:NONE}", ANN) is None
