"""The catalogue over a store in memory: revisions, ranges, life cycle, removal, realms."""

import asyncio
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from toolcrib.contracts import Conflict, InvalidDefinition, NotFound, ProviderDefinition, ToolDefinition, ToolRevision
from toolcrib.core.registry import Providers, Registry, check_definition
from toolcrib.infrastructure.store import Changed, Definition, DefinitionKind, Definitions, MemoryStore
from toolcrib.kinds.python.shape import PythonImplementation

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def definition(name: str = "search", version: str = "1.0.0", **fields: Any) -> ToolDefinition:
    return ToolDefinition.model_validate(
        {"name": name, "version": version, "implementation": PythonImplementation(function="crm:search")} | fields
    )


async def save(registry: Registry, name: str = "search", version: str = "1.0.0", **fields: Any) -> ToolRevision:
    return await registry.save(definition(name, version, **fields), realm="acme", made_by="ann", at=NOON)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def registry(store: MemoryStore) -> Registry:
    return Registry(store.definitions)


def found(registry: Registry, version: str | None = None) -> str | None:
    revision = registry.find("acme", "search", version)
    return None if revision is None else f"{revision.version} r{revision.revision}"


@pytest.mark.requirement("registry.revisions")
async def test_saving_makes_the_next_revision_with_the_content_s_hash(registry: Registry):
    first = await save(registry)
    second = await save(registry, description="Find deals.")

    assert first == ToolRevision(
        definition=definition(),
        revision=1,
        content_hash=definition().content_hash(),
        realm="acme",
        made_by="ann",
        created_at=NOON,
        first_created_at=NOON,
    )
    assert (second.revision, second.ref) == (2, "search@1.0.0")
    assert second.content_hash != first.content_hash
    assert found(registry) == "1.0.0 r2"


@pytest.mark.requirement("registry.revisions")
async def test_the_same_content_again_is_the_revision_that_is_there(registry: Registry):
    first = await save(registry)

    again = await registry.save(definition(), realm="acme", made_by="bob", at=NOON.replace(hour=13))

    assert again == first
    assert await registry.revisions("acme", "search") == [first]
    assert registry.current("acme") == [first]


@pytest.mark.requirement("registry.roll_back")
async def test_an_older_content_that_is_saved_again_is_what_a_call_gets(registry: Registry):
    first = await save(registry)
    await save(registry, description="Find deals.")
    again = await save(registry)

    assert (again.revision, again.content_hash) == (3, first.content_hash)
    assert found(registry) == "1.0.0 r3"
    assert [known.revision for known in await registry.revisions("acme", "search")] == [1, 2, 3]


@pytest.mark.requirement("registry.optimistic")
async def test_a_change_is_refused_if_another_was_saved_meanwhile(registry: Registry):
    first = await save(registry)
    await registry.save(definition(description="Theirs."), realm="acme", made_by="bob", at=NOON, after=first.revision)

    with pytest.raises(Conflict, match="'search' has revision 2 and this change was made to revision 1"):
        await registry.save(definition(description="Ours."), realm="acme", made_by="ann", at=NOON, after=1)


@pytest.mark.requirement("registry.optimistic")
async def test_a_change_to_the_revision_that_calls_get_is_saved_though_another_version_has_a_later_one(
    registry: Registry,
):
    await save(registry, version="2.0.0")
    await save(registry, version="1.0.0")

    saved = await registry.save(definition("search", "2.0.1"), realm="acme", made_by="ann", at=NOON, after=1)

    assert saved.revision == 3


@pytest.mark.requirement("registry.optimistic")
async def test_a_change_that_another_process_saved_is_noticed(registry: Registry, store: MemoryStore):
    await save(registry)
    await Registry(store.definitions).save(definition(description="Theirs."), realm="acme", made_by="bob", at=NOON)

    with pytest.raises(Conflict, match="read it again"):
        await registry.save(definition(description="Ours."), realm="acme", made_by="ann", at=NOON, after=1)


@pytest.mark.requirement("registry.revisions")
async def test_all_revisions_of_a_name_are_listed_oldest_first(registry: Registry):
    for version in ("2.0.0", "1.0.0", "1.5.0"):
        await save(registry, version=version)

    assert [revision.version for revision in await registry.revisions("acme", "search")] == ["2.0.0", "1.0.0", "1.5.0"]


@pytest.mark.requirement("registry.resolve")
@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (None, "2.0.0 r4"),
        ("*", "2.0.0 r4"),
        ("^1", "1.10.0 r3"),
        ("~1.2", "1.2.0 r6"),
        ("1.2.0", "1.2.0 r6"),
        ("3.0.0-rc.1", "3.0.0-rc.1 r5"),
        (">=3", None),
    ],
)
async def test_a_range_finds_its_newest_version_in_its_newest_revision(
    registry: Registry, version: str | None, expected: str | None
):
    for each in ("1.2.0", "1.9.0", "1.10.0", "2.0.0", "3.0.0-rc.1"):
        await save(registry, version=each)
    await save(registry, version="1.2.0", description="Corrected.")

    assert found(registry, version) == expected


@pytest.mark.requirement("registry.resolve")
async def test_a_single_revision_is_found_without_a_range_and_only_in_its_own(registry: Registry):
    await save(registry, version="1.0.0-rc.1")

    assert found(registry) == "1.0.0-rc.1 r1"
    assert found(registry, "^1") is None
    assert registry.find("acme", "absent", None) is None


@pytest.mark.requirement("registry.resolve")
async def test_a_tool_saved_after_it_was_asked_for_is_found_however_many_unknown_names_came_before(registry: Registry):
    unknown = [registry.find("acme", f"unknown_{number}", None) for number in range(20_000)]
    assert found(registry) is None

    await save(registry)

    assert set(unknown) == {None}
    assert found(registry) == "1.0.0 r1"


@pytest.mark.requirement("registry.resolve", "registry.life_cycle")
async def test_a_blocked_version_gives_way_to_another_and_is_found_only_if_there_is_none(registry: Registry):
    await save(registry, version="1.0.0")
    await save(registry, version="1.1.0")

    blocked = await registry.set_status("acme", "search@1.1.0", "blocked", message="it lost data", replacement="find")

    assert (blocked.version, blocked.status, blocked.status_message, blocked.replacement) == (
        "1.1.0",
        "blocked",
        "it lost data",
        "find",
    )
    assert found(registry) == "1.0.0 r1"
    assert found(registry, "^1.1") == "1.1.0 r2"
    await registry.set_status("acme", "search@1.0.0", "blocked")
    assert found(registry) == "1.1.0 r2"


@pytest.mark.requirement("registry.life_cycle")
async def test_a_deprecated_version_is_still_found_says_so_and_can_be_brought_back(registry: Registry):
    saved = await save(registry)
    sunset = NOON.replace(month=6, day=30)

    deprecated = await registry.set_status("acme", "search", "deprecated", message="use find", sunset=sunset)

    assert registry.require("acme", "search") == deprecated
    assert (deprecated.status, deprecated.sunset) == ("deprecated", sunset)
    assert deprecated.content_hash == saved.content_hash
    assert await registry.get_revision("acme", saved.content_hash) == deprecated
    assert await registry.set_status("acme", "search@1.0.0", "active") == saved


@pytest.mark.requirement("registry.life_cycle")
async def test_every_revision_of_a_version_has_its_state(registry: Registry):
    await save(registry)
    await save(registry, description="Corrected.")

    await registry.set_status("acme", "search@1.0.0", "blocked")

    assert [revision.status for revision in await registry.revisions("acme", "search")] == ["blocked", "blocked"]


@pytest.mark.requirement("registry.pinned")
async def test_a_removed_tool_is_found_by_its_hash_only(registry: Registry, store: MemoryStore):
    saved = await save(registry)

    await registry.remove("acme", "search")

    assert found(registry) is None
    assert registry.names("acme") == []
    assert registry.current("acme") == []
    assert await registry.revisions("acme", "search") == []
    assert await registry.get_revision("acme", saved.content_hash) == saved
    assert await Registry(store.definitions).get_revision("acme", saved.content_hash) == saved


@pytest.mark.requirement("registry.pinned", "registry.revisions")
async def test_a_removed_tool_that_is_saved_again_is_back_under_its_old_number(registry: Registry):
    saved = await save(registry)
    await registry.remove("acme", "search")

    assert await save(registry) == saved
    assert found(registry) == "1.0.0 r1"


@pytest.mark.requirement("registry.pinned", "registry.realms")
async def test_a_hash_that_the_realm_never_had_or_that_names_no_tool_is_not_found(
    registry: Registry, store: MemoryStore
):
    saved = await save(registry)
    provider = Definition("provider", "acme", "crm", "1.0.0", 0, "sha256:provider", {}, "ann", NOON)
    await store.definitions.save(provider)

    for realm, content_hash in [("other", saved.content_hash), ("acme", "sha256:0"), ("acme", "sha256:provider")]:
        with pytest.raises(NotFound, match=f"realm '{realm}' has no tool with content hash '{content_hash}'"):
            await registry.get_revision(realm, content_hash)


@pytest.mark.requirement("registry.realms")
async def test_a_realm_sees_its_own_tools_only(registry: Registry):
    await save(registry)
    await registry.save(definition("other_search"), realm="other", made_by="eve", at=NOON)

    assert (registry.names("acme"), registry.names("other")) == (["search"], ["other_search"])
    assert registry.find("other", "search", None) is None
    await registry.remove("acme", "search")
    assert registry.names("other") == ["other_search"]


@pytest.mark.requirement("registry.nearest")
@pytest.mark.parametrize(
    ("saved", "ref", "message"),
    [
        ((), "search", "no tool 'search' in realm 'acme'; add it first"),
        (("search_deals", "update_deal"), "serch_deals", "did you mean 'search_deals'?"),
        (("b_tool", "a_tool"), "zzz@^1", "no tool 'zzz@^1' in realm 'acme'; available: a_tool, b_tool"),
        (("search",), "search@^2", "no tool 'search@^2' in realm 'acme'; available: search@1.0.0"),
    ],
)
async def test_what_is_not_found_is_answered_with_the_nearest(
    registry: Registry, saved: Sequence[str], ref: str, message: str
):
    for name in saved:
        await save(registry, name)

    for asking in (registry.set_status("acme", ref, "blocked"), registry.remove("acme", ref)):
        with pytest.raises(NotFound) as caught:
            await asking
        assert str(caught.value).endswith(message)


@pytest.mark.requirement("registry.nearest")
async def test_the_last_ten_versions_are_named(registry: Registry):
    for minor in range(12):
        await save(registry, version=f"1.{minor}.0")

    with pytest.raises(NotFound) as caught:
        registry.require("acme", "search@2")

    assert str(caught.value).endswith("available: " + ", ".join(f"search@1.{minor}.0" for minor in range(2, 12)))


@pytest.mark.requirement("registry.resolve", "registry.nearest")
async def test_a_range_that_is_none_is_refused_as_such(registry: Registry):
    await save(registry)

    with pytest.raises(InvalidDefinition, match="version range 'latest' is not understood"):
        registry.require("acme", "search@latest")


@pytest.mark.requirement("registry.refresh")
async def test_what_another_process_saved_changed_and_removed_is_seen_after_a_refresh(
    registry: Registry, store: MemoryStore
):
    other = Registry(store.definitions)
    await save(registry, "removed")
    await save(other)
    await other.refresh("acme")
    await other.set_status("acme", "search", "deprecated")
    await other.remove("acme", "removed")
    await registry.save(definition("kept"), realm="other", made_by="eve", at=NOON)
    assert registry.names("acme") == ["removed"]

    await registry.refresh("acme")

    assert registry.names("acme") == ["search"]
    assert registry.require("acme", "search").status == "deprecated"
    assert registry.names("other") == ["kept"]


class SlowReading:
    """A store's definitions whose lists arrive only when they are let go."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self.asked = asyncio.Event()
        self.let_go = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._definitions, name)

    async def revisions(self, kind: DefinitionKind, realm: str, name: str | None = None) -> Sequence[Definition]:
        listed = await self._definitions.revisions(kind, realm, name)
        await self._hold()
        return listed

    async def changes_since(
        self, kind: DefinitionKind, realm: str, since: int, *, without: Collection[str] = ()
    ) -> Changed:
        found = await self._definitions.changes_since(kind, realm, since, without=without)
        await self._hold()
        return found

    async def _hold(self) -> None:
        self.asked.set()
        await self.let_go.wait()


@pytest.mark.requirement("registry.refresh")
async def test_a_refresh_under_way_does_not_lose_what_is_saved_or_bring_back_what_is_removed(store: MemoryStore):
    await save(Registry(store.definitions), "old")
    definitions = SlowReading(store.definitions)
    registry = Registry(cast("Definitions", definitions))
    definitions.let_go.set()
    await registry.refresh("acme")
    await save(Registry(store.definitions), "new")
    definitions.let_go.clear()
    definitions.asked.clear()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(registry.refresh("acme"))
        await definitions.asked.wait()
        tasks.create_task(save(registry))
        tasks.create_task(registry.remove("acme", "old"))
        await asyncio.sleep(0)
        definitions.let_go.set()

    assert registry.names("acme") == ["new", "search"]


@pytest.mark.requirement("registry.refresh")
async def test_a_refresh_under_way_does_not_bring_back_an_older_provider(store: MemoryStore):
    definitions = SlowReading(store.definitions)
    providers = Providers(cast("Definitions", definitions))
    old, new = (ProviderDefinition(name="crm", base_url=f"https://{host}.test") for host in ("old", "new"))
    await providers.save(old, realm="acme", made_by="ann", at=NOON)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(providers.refresh("acme"))
        await definitions.asked.wait()
        tasks.create_task(providers.save(new, realm="acme", made_by="ann", at=NOON))
        await asyncio.sleep(0)
        definitions.let_go.set()

    assert providers.find("acme", "crm") == new


@pytest.mark.requirement("registry.check", "registry.schema_refused")
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"version": "1.0"}, "version '1.0' is not a semantic version"),
        (
            {"input_schema": {"type": "objec"}},
            "tool 'search': input_schema is not a JSON Schema 2020-12 that can be used offline: at /type:",
        ),
        ({"output_schema": {"$ref": "https://example.com/x"}}, "tool 'search': output_schema is not a JSON Schema"),
        ({"input_schema": {"type": "array"}}, "tool 'search': input_schema has type 'array'; arguments are an object"),
        ({"cache": "ttl", "side_effects": "reads"}, "tool 'search': cache is 'ttl' without cache_ttl_s"),
        ({"cache": "forever"}, "tool 'search' writes, so its results cannot be cached; set cache to 'none'"),
        ({"category": ""}, "tool 'search': category '' is not a segment of a security URI"),
        ({"category": "crm/deals"}, "tool 'search': category 'crm/deals' is not a segment of a security URI"),
        ({"security_uri": "crm"}, "tool 'search': security_uri 'crm' is invalid"),
        ({"security_uri": "ai://tools/*/execute"}, "tool 'search': security_uri 'ai://tools/*/execute' is invalid"),
        ({"metadata": {"a": "x" * 16_400}}, "tool 'search': metadata has 16408 bytes of JSON, at most 16384 are kept"),
        ({"metadata": {"a": float("nan")}}, "tool 'search': metadata is not JSON: "),
    ],
)
async def test_a_definition_that_could_not_run_is_refused_and_not_stored(
    registry: Registry, fields: dict[str, Any], message: str
):
    with pytest.raises(InvalidDefinition) as caught:
        await save(registry, **fields)

    assert str(caught.value).startswith(message)
    assert await registry.revisions("acme", "search") == []


@pytest.mark.requirement("registry.check")
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"input_schema": {}},
        {"output_schema": {"type": "array"}},
        {"cache": "ttl", "cache_ttl_s": 60, "side_effects": "reads"},
        {"cache": "forever", "side_effects": "none"},
        {"metadata": {"owner": "crm-team", "tickets": [17, {"id": None}]}},
        {"category": "customer relations", "security_uri": "ai://tools/crm/search/execute"},
    ],
)
def test_a_definition_that_can_run_is_accepted(fields: dict[str, Any]):
    check_definition(definition(**fields))
