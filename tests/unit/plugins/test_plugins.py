"""Runtimes and model providers of other packages: what is loaded, what is refused, and how their tools run."""

from collections.abc import Iterable
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from toolcrib import Crib, DefinitionOptions
from toolcrib.contracts import (
    ErrorCode,
    InvalidDefinition,
    InvalidSettings,
    Json,
    JsonSchema,
    LLMConfig,
    Reason,
    ToolDefinition,
)
from toolcrib.core.executor import CallFailed, Dispatch, Outcome, error
from toolcrib.crib.container.plugins import MODEL_PROVIDERS, RUNTIMES, PluginHost, load_plugins
from toolcrib.kinds.plugin.shape import PluginImplementation
from toolcrib.llm import Provider

HERE = "tests.unit.plugins.test_plugins"


class Ledger:
    """A runtime as another package would write it."""

    def __init__(self, host: PluginHost) -> None:
        self.host = host

    @property
    def config_schema(self) -> JsonSchema:
        """What its tools must say."""
        return {"type": "object", "required": ["book"], "properties": {"book": {"type": "string"}}}

    async def run(self, dispatch: Dispatch) -> Outcome:
        """Execute once."""
        implementation = dispatch.tool.definition.implementation
        assert isinstance(implementation, PluginImplementation)
        amount: Json = dispatch.input.get("amount")
        if amount == 0:
            raise CallFailed(error(ErrorCode.VALIDATION_ERROR, Reason.REQUEST_REFUSED, "nothing to book"))
        if amount == 13:
            raise KeyError("unlucky")
        return Outcome({"booked": amount, "book": implementation.config["book"]})


class NoSchema(Ledger):
    """A runtime whose schema is none."""

    @property
    def config_schema(self) -> JsonSchema:
        """No schema."""
        return {"type": "nothing"}


acme = Provider(base_url="https://models.acme.example/v1", key_required=False)


def no_runtime(host: PluginHost) -> object:
    """Makes something else."""
    return host


def installed(**points: str) -> Any:
    """An environment with these entry points; `models_` in front of a name says the other group."""

    def find(group: str) -> Iterable[EntryPoint]:
        wanted = group == MODEL_PROVIDERS
        for name, value in points.items():
            if name.startswith("models_") == wanted:
                yield EntryPoint(name.removeprefix("models_").rstrip("_"), value, group)

    return find


def crib_with(**points: str) -> Crib:
    names = [name.removeprefix("models_") for name in points]
    return Crib("memory://", definitions=DefinitionOptions(plugins=load_plugins(names, installed(**points))))


def booking(config: Any, runtime: str = "ledger") -> ToolDefinition:
    return ToolDefinition(
        name="book", side_effects="reads", implementation=PluginImplementation(runtime=runtime, config=config)
    )


@pytest.mark.requirement("plugins.runtimes")
async def test_a_tool_of_a_plugin_runs_and_fails_as_every_tool_does():
    async with crib_with(ledger=f"{HERE}:Ledger") as crib:
        crib.add(booking({"book": "main"}))
        booked = await crib.call("book", amount=5)
        refused = await crib.call("book", amount=0)
        crashed = await crib.call("book", amount=13)

    assert booked.output == {"booked": 5, "book": "main"}
    assert refused.error is not None
    assert (refused.error.code, refused.error.message) == (ErrorCode.VALIDATION_ERROR, "nothing to book")
    assert crashed.error is not None
    assert (crashed.error.code, crashed.error.reason) == (ErrorCode.UNKNOWN, Reason.TOOL_FAILED)


@pytest.mark.requirement("plugins.definitions")
@pytest.mark.parametrize(
    ("definition", "why"),
    [
        (booking({}), "its config is not what runtime 'ledger' wants"),
        (booking({"book": 5}), "book"),
        (booking({"book": "a"}, "other"), "this process has no plugin runtime 'other'; it has: ledger"),
    ],
)
async def test_a_tool_is_saved_only_if_its_runtime_is_here_and_wants_its_config(definition: ToolDefinition, why: str):
    async with crib_with(ledger=f"{HERE}:Ledger") as crib:
        with pytest.raises(InvalidDefinition, match=why):
            await crib.save(definition)


@pytest.mark.requirement("plugins.definitions")
async def test_a_tool_whose_plugin_is_gone_says_what_to_do():
    async with crib_with(ledger=f"{HERE}:Ledger") as crib:
        await crib.save(booking({"book": "a"}))
        async with Crib(crib.store) as other:
            envelope = await other.call("book", amount=1)

    assert envelope.error is not None
    assert envelope.error.reason is Reason.RUNTIME_MISSING
    assert "name it in TOOLCRIB_PLUGINS" in envelope.error.message


@pytest.mark.requirement("plugins.model_providers")
async def test_a_model_provider_of_a_plugin_can_be_named():
    async with crib_with(models_acme=f"{HERE}:acme") as crib:
        agent = crib.agentic_tool("agent", mode="agentic", model="acme:large", tools=[])
        assert agent is not None

    with pytest.raises(InvalidSettings, match="'acme' is not a known provider"):
        Crib("memory://").agentic_tool("agent", mode="agentic", model=LLMConfig(model="acme:large"), tools=[])


@pytest.mark.requirement("plugins.opt_in")
def test_what_the_operator_has_not_named_is_not_loaded():
    found = load_plugins([], installed(ledger="nowhere:at_all"))

    assert (found.makers, found.model_providers) == ({}, {})


@pytest.mark.requirement("plugins.opt_in")
@pytest.mark.parametrize(
    ("name", "points", "why"),
    [
        ("gone", {"ledger": f"{HERE}:Ledger"}, "plugin 'gone' is not installed; installed are: ledger"),
        ("gone", {}, "installed are: none"),
        ("ledger", {"ledger": "toolcrib_nowhere:at"}, "plugin 'ledger' of an unknown distribution cannot be loaded"),
        ("ledger", {"ledger": f"{HERE}:nothing"}, "cannot be loaded"),
        ("ledger", {"ledger": f"{HERE}:HERE"}, "is no function that makes a runtime"),
        ("ledger", {"ledger": f"{HERE}:Ledger", "ledger_": f"{HERE}:Ledger"}, "is offered by .* and .*; uninstall one"),
        ("acme", {"models_acme": f"{HERE}:Ledger"}, "is no toolcrib.llm.Provider"),
        ("openai", {"models_openai": f"{HERE}:acme"}, "has the name of a provider that everybody has"),
    ],
)
def test_what_cannot_be_loaded_is_refused_with_its_reason(name: str, points: dict[str, str], why: str):
    with pytest.raises(InvalidSettings, match=why):
        load_plugins([name], installed(**points))


@pytest.mark.requirement("plugins.runtimes")
@pytest.mark.parametrize(
    ("value", "why"), [("no_runtime", "made no runtime"), ("NoSchema", "is not JSON Schema 2020-12")]
)
def test_what_a_plugin_makes_must_be_a_runtime(value: str, why: str):
    with pytest.raises(InvalidSettings, match=why):
        crib_with(ledger=f"{HERE}:{value}")


@pytest.mark.requirement("plugins.opt_in")
def test_the_environment_is_asked_by_group():
    with pytest.raises(InvalidSettings, match="plugin 'toolcrib-nowhere' is not installed"):
        load_plugins(["toolcrib-nowhere"])
    assert (RUNTIMES, MODEL_PROVIDERS) == ("toolcrib.runtimes", "toolcrib.model_providers")
