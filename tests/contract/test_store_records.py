"""Definitions, cached results, blobs and API keys: their promises, on every store."""

from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest

from tests.unit.store.samples import NOON, definition, later, opened_at
from toolcrib.contracts import Conflict, JsonObject, NotFound, digest
from toolcrib.infrastructure.store import ApiKey, Removal, SealedKey, SealedValue, Store, VersionState

PLACE = SealedKey("default", "realm", "crm")


@pytest.fixture
async def store(store_url: str) -> AsyncGenerator[Store]:
    async with opened_at(store_url) as opened_store:
        yield opened_store


@pytest.mark.requirement("store.revisions")
async def test_revisions_of_a_name_are_counted_across_versions(store: Store):
    first = await store.definitions.save(definition())
    second = await store.definitions.save(definition(content="b"))
    third = await store.definitions.save(definition(content="c", version="2.0.0"))

    assert [saved.revision for saved in (first, second, third)] == [1, 2, 3]
    assert first == definition(revision=1)
    assert list(await store.definitions.revisions("tool", "default", "search")) == [first, second, third]
    assert await store.definitions.get("default", "sha256:search-b") == second


@pytest.mark.requirement("store.revisions")
async def test_an_equal_content_is_not_saved_again(store: Store):
    first = await store.definitions.save(definition())
    again = await store.definitions.save(definition(made_by="someone", created_at=later(9)))

    assert again == first
    assert len(await store.definitions.revisions("tool", "default")) == 1


@pytest.mark.requirement("store.revisions")
async def test_every_name_is_listed_by_name_and_revision(store: Store):
    for name, content in (("b", "1"), ("a", "1"), ("b", "2"), ("B", "1")):
        await store.definitions.save(definition(name, content))
    await store.definitions.save(definition("c", kind="provider"))

    listed = await store.definitions.revisions("tool", "default")
    assert [(each.name, each.revision) for each in listed] == [("B", 1), ("a", 1), ("b", 1), ("b", 2)]
    assert [each.name for each in await store.definitions.revisions("provider", "default")] == ["c"]


@pytest.mark.requirement("store.removal")
async def test_a_removed_name_is_in_no_list_but_readable_by_hash(store: Store):
    first = await store.definitions.save(definition())
    await store.definitions.save(definition(content="b"))

    assert await store.definitions.remove("tool", "default", "search") == 2
    assert await store.definitions.remove("tool", "default", "search") == 0
    assert list(await store.definitions.revisions("tool", "default")) == []
    assert list(await store.definitions.revisions("tool", "default", "search")) == []
    assert await store.definitions.get("default", first.content_hash) == first


@pytest.mark.requirement("store.removal")
async def test_one_version_of_a_name_is_removed_and_the_others_stay(store: Store):
    old, new = await store.definitions.save(definition()), await store.definitions.save(definition(version="2.0.0"))
    before = await store.definitions.changes("default")

    assert await store.definitions.remove("tool", "default", "search", "2.0.0") == 1
    assert await store.definitions.remove("tool", "default", "search", "2.0.0") == 0
    assert list(await store.definitions.revisions("tool", "default", "search")) == [old]
    assert (await store.definitions.changes_since("tool", "default", before)).removed == [("search", 2)]
    assert await store.definitions.save(definition(version="2.0.0")) == new


@pytest.mark.requirement("store.removal")
async def test_what_was_removed_comes_back_when_it_is_saved_again(store: Store):
    await store.definitions.save(definition())
    second = await store.definitions.save(definition(content="b"))
    await store.definitions.remove("tool", "default", "search")

    assert await store.definitions.save(definition(content="b")) == second
    third = await store.definitions.save(definition(content="c"))

    assert third.revision == 3
    assert list(await store.definitions.revisions("tool", "default", "search")) == [second, third]


@pytest.mark.requirement("store.definitions.changed")
async def test_what_has_changed_since_is_told_without_the_rest(store: Store):
    await store.definitions.save(definition("a"))
    await store.definitions.save(definition("b"))
    await store.definitions.save(definition("p", kind="provider"))
    since = await store.definitions.changes("default")
    assert await store.definitions.changes_since("tool", "default", since) == ([], [])

    new = await store.definitions.save(definition("a", content="b"))
    await store.definitions.set_status("tool", "default", "b", "1.0.0", status="blocked")
    await store.definitions.save(definition("c"))
    await store.definitions.remove("tool", "default", "c")
    changed = await store.definitions.changes_since("tool", "default", since)

    assert [(each.name, each.revision, each.status) for each in changed.revisions] == [
        ("a", new.revision, "active"),
        ("b", 1, "blocked"),
    ]
    assert list(changed.removed) == [("c", 1)]
    assert [each.name for each in (await store.definitions.changes_since("provider", "default", 0)).revisions] == ["p"]


@pytest.mark.requirement("store.roll_back")
async def test_an_older_content_becomes_the_newest_revision_once_more(store: Store):
    first = await store.definitions.save(definition())
    second = await store.definitions.save(definition(content="b"))
    third = await store.definitions.save(replace(definition(), made_by="bob"))

    assert third == replace(first, revision=3, made_by="bob")
    assert await store.definitions.save(definition()) == third
    assert list(await store.definitions.revisions("tool", "default")) == [first, second, third]


@pytest.mark.requirement("store.roll_back")
async def test_versions_do_not_take_the_newest_place_from_each_other(store: Store):
    first = await store.definitions.save(definition())
    second = await store.definitions.save(definition(content="b", version="2.0.0"))

    assert await store.definitions.save(definition()) == first
    assert await store.definitions.save(definition(content="b", version="2.0.0")) == second


@pytest.mark.requirement("store.roll_back", "store.life_cycle")
async def test_a_content_that_was_blocked_is_still_blocked_when_it_comes_back(store: Store):
    await store.definitions.save(definition())
    await store.definitions.save(definition(content="b"))
    await store.definitions.set_status("tool", "default", "search", "1.0.0", status="blocked", message="unsafe")

    again = await store.definitions.save(definition())

    assert (again.revision, again.status, again.status_message) == (3, "blocked", "unsafe")


@pytest.mark.requirement("store.optimistic")
async def test_a_change_to_a_revision_that_is_not_the_newest_any_more_is_refused(store: Store):
    await store.definitions.save(definition(), after=0)
    await store.definitions.save(definition(content="b"), after=1)

    with pytest.raises(Conflict, match="'search' has revision 2 and this change was made to revision 1; read it again"):
        await store.definitions.save(definition(content="c"), after=1)
    assert len(await store.definitions.revisions("tool", "default")) == 2


@pytest.mark.requirement("store.optimistic")
async def test_a_name_that_should_be_new_is_refused_if_it_is_there_and_taken_if_it_was_removed(store: Store):
    await store.definitions.save(definition(), after=0)
    with pytest.raises(Conflict, match="tool 'search' exists"):
        await store.definitions.save(definition(content="b"), after=0)
    await store.definitions.remove("tool", "default", "search")

    assert (await store.definitions.save(definition(content="b"), after=0)).revision == 2


@pytest.mark.requirement("store.together")
async def test_definitions_and_states_are_saved_together_in_their_order(store: Store):
    await store.definitions.save(definition("old"))
    blocked = VersionState("tool", "default", "old", "1.0.0", "blocked", message="gone")

    seen = await store.definitions.changes("default")
    saved = await store.definitions.save_all(
        "default", [definition(), definition(content="b"), definition("crm", kind="provider")], [blocked], seen=seen
    )

    assert [(each.name, each.revision) for each in saved] == [("search", 1), ("search", 2), ("crm", 1)]
    [old] = await store.definitions.revisions("tool", "default", "old")
    assert (old.status, old.status_message) == ("blocked", "gone")
    assert await store.definitions.changes("default") > seen


@pytest.mark.requirement("store.together")
async def test_names_and_versions_are_removed_together_with_what_is_saved(store: Store):
    for each in (definition("old"), definition(), definition(version="2.0.0")):
        await store.definitions.save(each)
    removals = [Removal("tool", "old"), Removal("tool", "search", "1.0.0")]
    with pytest.raises(Conflict):
        await store.definitions.save_all("default", [definition("new")], seen=0, removals=removals)
    assert len(await store.definitions.revisions("tool", "default")) == 3

    seen = await store.definitions.changes("default")
    await store.definitions.save_all("default", [definition("new")], seen=seen, removals=removals)
    left = await store.definitions.revisions("tool", "default")
    assert [(each.name, each.version) for each in left] == [("new", "1.0.0"), ("search", "2.0.0")]


@pytest.mark.requirement("store.together")
async def test_nothing_of_them_is_saved_if_the_realm_has_changed_since(store: Store):
    seen = await store.definitions.changes("default")
    await store.definitions.save(definition("other"))

    with pytest.raises(Conflict, match="nothing was saved, so try again"):
        await store.definitions.save_all("default", [definition()], seen=seen)
    assert [each.name for each in await store.definitions.revisions("tool", "default")] == ["other"]


@pytest.mark.requirement("store.changes")
async def test_every_change_of_a_realm_has_a_greater_number_than_the_one_before(store: Store):
    definitions, numbers = store.definitions, [await store.definitions.changes("default")]

    async def note() -> None:
        numbers.append(await definitions.changes("default"))

    await definitions.save(definition())
    await note()
    await definitions.set_status("tool", "default", "search", "1.0.0", status="blocked")
    await note()
    await definitions.remove("tool", "default", "search")
    await note()
    await definitions.save(definition())
    await note()

    assert numbers[0] == 0
    assert numbers == sorted(set(numbers))


@pytest.mark.requirement("store.changes")
async def test_what_is_saved_again_and_what_another_realm_saves_is_no_change(store: Store):
    await store.definitions.save(definition())
    before = await store.definitions.changes("default")
    await store.definitions.save(definition())
    await store.definitions.save(definition(realm="other"))

    assert await store.definitions.changes("default") == before


@pytest.mark.requirement("store.life_cycle")
async def test_the_status_of_a_version_changes_with_all_its_revisions(store: Store):
    first = await store.definitions.save(definition())
    second = await store.definitions.save(definition(content="b"))
    other = await store.definitions.save(definition(content="c", version="2.0.0"))

    count = await store.definitions.set_status(
        "tool", "default", "search", "1.0.0", status="deprecated", message="use 2", sunset=later(60), replacement="x@2"
    )

    change = {"status": "deprecated", "status_message": "use 2", "sunset": later(60), "replacement": "x@2"}
    assert count == 2
    assert list(await store.definitions.revisions("tool", "default")) == [
        replace(first, **change),
        replace(second, **change),
        other,
    ]


@pytest.mark.requirement("store.life_cycle")
async def test_a_status_is_taken_back_and_an_unknown_version_has_none(store: Store):
    saved = await store.definitions.save(definition())
    await store.definitions.set_status("tool", "default", "search", "1.0.0", status="blocked", message="unsafe")
    await store.definitions.set_status("tool", "default", "search", "1.0.0", status="active")

    assert await store.definitions.get("default", saved.content_hash) == saved
    assert await store.definitions.set_status("tool", "default", "search", "9.0.0", status="blocked") == 0
    assert await store.definitions.set_status("tool", "default", "none", "1.0.0", status="blocked") == 0


@pytest.mark.requirement("store.life_cycle", "store.removal")
async def test_a_removed_version_can_be_blocked_for_those_who_pinned_it(store: Store):
    saved = await store.definitions.save(definition())
    await store.definitions.remove("tool", "default", "search")

    assert await store.definitions.set_status("tool", "default", "search", "1.0.0", status="blocked") == 1
    assert await store.definitions.get("default", saved.content_hash) == replace(saved, status="blocked")
    assert (await store.definitions.save(definition())).status == "blocked"


@pytest.mark.requirement("store.realms")
async def test_definitions_of_another_realm_are_not_seen(store: Store):
    await store.definitions.save(definition())
    theirs = await store.definitions.save(definition(realm="other"))

    assert theirs.revision == 1
    assert await store.definitions.remove("tool", "default", "search") == 1
    assert list(await store.definitions.revisions("tool", "other")) == [theirs]
    assert await store.definitions.get("third", theirs.content_hash) is None


@pytest.mark.requirement("store.cache")
async def test_a_cached_result_is_found_until_it_expires(store: Store):
    await store.cache.put("k", {"n": 1}, realm="default", made_by="owner", expires_at=later(10))

    assert await store.cache.get("k", now=later(9.999)) == {"n": 1}
    assert await store.cache.get("k", now=later(10)) is None
    assert await store.cache.get("other", now=NOON) is None


@pytest.mark.requirement("store.cache")
async def test_a_cached_result_is_replaced_and_may_be_kept_for_ever(store: Store):
    await store.cache.put("k", {"n": 1}, realm="default", made_by="owner", expires_at=later(10))
    await store.cache.put("k", {"n": 2}, realm="default", made_by="owner", expires_at=None)

    assert await store.cache.get("k", now=later(10**9)) == {"n": 2}


@pytest.mark.requirement("store.cache")
async def test_who_holds_a_result_cannot_change_the_cached_one(store: Store):
    value: JsonObject = {"list": [1]}
    await store.cache.put("k", value, realm="default", made_by="owner", expires_at=None)
    value["list"].append(2)
    read = await store.cache.get("k", now=NOON)
    assert read is not None
    assert read == {"list": [1]}
    read["list"].append(3)

    assert await store.cache.get("k", now=NOON) == {"list": [1]}


@pytest.mark.requirement("store.blobs")
async def test_a_blob_is_named_by_its_digest_and_read_back(store: Store):
    data = b'{"prompt": "\x00\xff"}'
    name = await store.blobs.put(data, realm="default", made_by="owner")

    assert name == digest(data)
    assert await store.blobs.get("default", name) == data
    assert await store.blobs.put(data, realm="default", made_by="someone", content_type="text/plain") == name
    assert await store.blobs.put(b"", realm="default", made_by="owner") == digest(b"")
    assert await store.blobs.get("default", digest(b"")) == b""


@pytest.mark.requirement("store.blobs", "store.realms")
@pytest.mark.parametrize("name", [digest(b"none"), "../../etc/passwd", "", "A" * 64])
async def test_a_blob_that_is_not_there_is_not_found(store: Store, name: str):
    with pytest.raises(NotFound, match="'default'"):
        await store.blobs.get("default", name)


@pytest.mark.requirement("store.realms")
async def test_a_blob_of_another_realm_is_not_found(store: Store):
    name = await store.blobs.put(b"secret", realm="default", made_by="owner")

    with pytest.raises(NotFound):
        await store.blobs.get("other", name)
    await store.blobs.put(b"secret", realm="other", made_by="owner")
    assert await store.blobs.get("other", name) == b"secret"


@pytest.mark.requirement("store.api_keys")
async def test_api_keys_are_found_by_id_and_counted(store: Store):
    key = ApiKey("k1", "default", "owner", "hmac", "owner", NOON, later(60), "wxyz", ("ai://runs/*", "ai://tools/*"))
    lasting = ApiKey("k2", "other", "bot", "hmac2", "owner", NOON)

    assert await store.api_keys.count() == 0
    await store.api_keys.add(key)
    await store.api_keys.add(lasting)

    assert await store.api_keys.count() == 2
    assert await store.api_keys.get("k1") == key
    assert await store.api_keys.get("k2") == lasting
    assert await store.api_keys.get("k3") is None


@pytest.mark.requirement("store.api_keys")
async def test_the_id_of_an_api_key_is_used_once(store: Store):
    key = ApiKey("k1", "default", "owner", "hmac", "owner", NOON)
    await store.api_keys.add(key)

    with pytest.raises(Conflict, match="k1"):
        await store.api_keys.add(replace(key, secret_hash="stolen"))
    assert await store.api_keys.get("k1") == key


@pytest.mark.requirement("store.opening")
async def test_a_store_may_be_opened_and_closed_twice(store: Store):
    await store.open()
    await store.api_keys.add(ApiKey("k1", "default", "owner", "hmac", "owner", NOON))
    await store.close()
    await store.close()
    await store.open()

    assert await store.api_keys.count() == 1


@pytest.mark.requirement("store.api_keys")
async def test_the_keys_of_a_realm_are_listed_and_one_is_forgotten(store: Store):
    keys = [ApiKey(f"k{n}", "default", "owner", "hmac", "owner", later(-n)) for n in range(3)]
    for key in (*keys, ApiKey("k9", "other", "bot", "hmac", "bot", NOON)):
        await store.api_keys.add(key)

    assert list(await store.api_keys.list("default")) == keys[::-1]
    assert not await store.api_keys.remove("default", "k9")
    assert await store.api_keys.remove("default", "k1")
    assert not await store.api_keys.remove("default", "k1")
    assert [key.key_id for key in await store.api_keys.list("default")] == ["k2", "k0"]
    assert await store.api_keys.get("k1") is None


def sealed(version: int = 1, place: SealedKey = PLACE, text: str = "sealed-text") -> SealedValue:
    return SealedValue(place, version, text, "ann", NOON)


@pytest.mark.requirement("store.sealed")
async def test_a_sealed_value_has_versions_without_a_gap(store: Store):
    assert await store.sealed.get(PLACE) is None
    await store.sealed.put(sealed())
    assert await store.sealed.get(PLACE) == sealed()
    for version in (1, 3):
        with pytest.raises(Conflict, match=f"'crm' of realm has version 1 and this would be version {version}"):
            await store.sealed.put(sealed(version))
    await store.sealed.put(sealed(2, text="newer"))
    assert await store.sealed.get(PLACE) == sealed(2, text="newer")
    assert "newer" not in repr(await store.sealed.get(PLACE))


@pytest.mark.requirement("store.sealed")
async def test_sealed_values_are_listed_by_place_and_removed_once(store: Store):
    places = [
        SealedKey("default", "realm", "a"),
        SealedKey("default", "user:ann", "a"),
        SealedKey("other", "realm", "a"),
    ]
    for place in reversed(places):
        await store.sealed.put(sealed(place=place))

    assert [value.place for value in await store.sealed.list("default")] == places[:2]
    assert [value.place for value in await store.sealed.list(None)] == places
    assert [await store.sealed.remove(places[1]) for _ in range(2)] == [True, False]
    assert [value.place for value in await store.sealed.list(None)] == [places[0], places[2]]


@pytest.mark.requirement("store.sealed")
async def test_a_sealed_value_is_sealed_anew_only_as_it_was_read(store: Store):
    await store.sealed.put(sealed())
    assert await store.sealed.reseal(sealed(), "other-key")
    assert not await store.sealed.reseal(sealed(), "third-key")
    assert await store.sealed.get(PLACE) == sealed(text="other-key")


@pytest.mark.requirement("store.cache_add")
async def test_a_value_is_added_once_until_it_has_expired(store: Store):
    async def add(value: JsonObject, seconds: int) -> bool:
        now = later(seconds)
        return await store.cache.add("k", value, realm="r", made_by="me", now=now, expires_at=later(seconds + 10))

    assert [await add({"n": 1}, 0), await add({"n": 2}, 9), await add({"n": 3}, 10)] == [True, False, True]
    assert await store.cache.get("k", now=later(11)) == {"n": 3}


@pytest.mark.requirement("store.cache_add")
async def test_what_has_expired_is_purged_and_what_is_kept_for_ever_is_not(store: Store):
    for key, expires_at in (("a", later(1)), ("b", later(2)), ("c", None)):
        await store.cache.put(key, {}, realm="r", made_by="me", expires_at=expires_at)

    assert [await store.cache.purge(now=later(1)), await store.cache.purge(now=later(1))] == [1, 0]
    assert await store.cache.get("b", now=later(1)) == {}
    assert await store.cache.get("c", now=later(1)) == {}
