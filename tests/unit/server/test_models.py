"""Lists of models over REST and in Python."""

from decimal import Decimal

import pytest

from tests.unit.server.client import PRINCIPALS, Server, serving
from toolcrib import Crib, DefinitionOptions, ScriptedModel
from toolcrib.contracts import ModelService, NotFound, PermissionDenied, Principal
from toolcrib.llm import Prices
from toolcrib.llm.base.prices import describe_model

pytestmark = pytest.mark.requirement("views.models")

KEY = "sk-canary-4711"


async def test_providers_say_whether_their_keys_are_set_and_never_what_they_are():
    async with serving(environment={"OPENAI_API_KEY": KEY}) as server:
        answer = await server.client.get("/api/v1/ai/models/providers")
        found = {each["name"]: each for each in answer.json()["items"]}

    assert KEY not in answer.text
    assert (found["openai"]["key_set"], found["openai"]["usable"], found["openai"]["wire"]) == (True, True, "chat")
    assert found["openai"]["address"] == "https://api.openai.com/v1"
    missing = found["anthropic"]
    assert (missing["key_set"], missing["usable"]) == (False, False)
    assert "ANTHROPIC_API_KEY" in missing["why_not"]
    assert "AZURE_OPENAI_ENDPOINT" in found["azure-openai"]["why_not"]
    assert "base_url" in found["openai-compatible"]["why_not"]
    assert (found["scripted"]["origin"], found["scripted"]["usable"]) == ("application", True)


async def test_models_on_local_addresses_are_usable_only_if_the_operator_allows_them():
    async with serving() as server:
        for allowed in (False, True):
            server.app.state.allow_local_models = allowed
            found = {each["name"]: each for each in (await server.get("/ai/models/providers"))["items"]}
            assert found["ollama"]["usable"] is allowed
            assert (await server.get("/ai/models/ollama:llama3.2"))["usable"] is allowed


async def test_a_model_has_the_rates_that_its_calls_are_priced_with(server: Server):
    found = await server.get("/ai/models/openai:gpt-4o")
    prices = Prices().rates("openai", "gpt-4o", server.crib.clock.now())

    assert not isinstance(prices, str)
    assert found["prices"]["input_usd"] == float(prices.input_usd) > 0
    assert found["prices"]["source"].startswith("genai-prices ")
    assert found["prices"]["as_of"].endswith("Z")
    assert found["prices"]["note"] == describe_model("openai", "gpt-4o").price_note
    assert found["context_window"] == 128_000
    assert (found["tools"], found["structured_output"], "image" in found["inputs"]) == ("native", "json_schema", True)


async def test_a_model_that_no_list_has_has_unknown_prices_and_not_none(server: Server):
    found = await server.get("/ai/models/openai:gpt-99")

    assert (found["prices"], found["context_window"]) == (None, None)
    assert "gpt-99" in found["why_unpriced"]


async def test_models_are_found_by_text_and_provider_and_page_by_page(server: Server):
    whole = (await server.get("/ai/models", {"provider": "openai", "q": "GPT-4", "limit": 200}))["items"]
    first = await server.get("/ai/models", {"provider": "openai", "q": "gpt-4", "limit": 2})
    second = await server.get("/ai/models", {"provider": "openai", "q": "gpt-4", "limit": 2, "after": first["next"]})

    references = [each["reference"] for each in whole]
    assert references == sorted(references)
    assert all(each.startswith("openai:") and "gpt-4" in each for each in references)
    assert [each["reference"] for each in (*first["items"], *second["items"])] == references[:4]
    assert (await server.get("/ai/models", {"provider": "scripted", "limit": 1}))["items"][0]["why_unpriced"]


async def test_only_models_that_can_be_asked_are_listed_on_request(server: Server):
    page = await server.get("/ai/models", {"usable": "true", "q": ":", "limit": 200})
    assert {each["provider"] for each in page["items"] if each["usable"]} >= {"scripted"}
    assert not [each for each in page["items"] if each["provider"] == "openai"]


async def test_who_may_not_see_a_provider_of_models_is_told_of_none(monkeypatch: pytest.MonkeyPatch):
    grants = ("ai://models/openai/read",)
    monkeypatch.setitem(PRINCIPALS, "buyer", Principal(id="buyer", grants=grants))
    async with serving() as server, server.client_of("buyer") as buyer:
        listed = (await buyer.get("/api/v1/ai/models/providers")).json()["items"]
        refused = await buyer.get("/api/v1/ai/models/anthropic:claude-sonnet-4-5")

    assert [each["name"] for each in listed] == ["openai"]
    assert (refused.status_code, "ai://models/anthropic/read" in refused.text) == (403, True)


async def test_an_unknown_provider_of_models_is_named(server: Server):
    refused = await server.get("/ai/models/nope:model", status=404)
    assert "'nope:model'" in refused["detail"]
    assert (await server.get("/ai/models/scripted:gone", status=404))["code"] == "not_found"


async def test_models_of_a_cloud_are_those_that_its_wire_speaks_to():
    async with Crib("memory://", environment={}) as crib:
        bedrock = await crib.model_catalog.page(provider="bedrock-anthropic", limit=200)
        vertex = await crib.model_catalog.page(provider="vertex-google", limit=200)

    assert bedrock.items
    assert vertex.items
    assert all("claude" in each.reference for each in bedrock.items)
    assert not any("claude" in each.reference for each in vertex.items)


async def test_configured_rates_and_services_of_the_operator_are_listed_as_theirs():
    service = ModelService(wire="openai", base_url="https://models.corp.example/v1", api_key_env="CORP_KEY")
    options = DefinitionOptions(
        prices=Prices({"corp:*": {"input": 1, "output": "2.5"}}), model_services={"corp": service}
    )
    models = {"scripted:x": ScriptedModel([])}
    async with Crib("memory://", environment={}, definitions=options, models=models) as crib:
        providers = {each.name: each for each in await crib.model_catalog.providers()}
        model = await crib.model_catalog.get("corp:small")
        with pytest.raises(NotFound, match="toolcrib model add"):
            await crib.model_catalog.get("local:qwen2.5-coder-1.5b")
        with pytest.raises(PermissionDenied):
            await crib.acting_as(Principal(id="x", grants=())).model_catalog.get("corp:small")

    assert (providers["corp"].origin, providers["corp"].wire, providers["corp"].key_set) == ("operator", "chat", False)
    assert model.prices is not None
    assert (model.prices.input_usd, model.prices.output_usd) == (1, Decimal("2.5"))
    assert (model.prices.source, model.prices.note) == ("configured corp:*", None)
    assert model.usable is False
