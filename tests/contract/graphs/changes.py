"""Kinds of change: of a tool's definition, field by field; of its life; and of what else a graph is bound to."""

from collections.abc import Awaitable, Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from tests.contract.graphs.workflows import GRAPHS, call
from tests.contract.graphs.world import LEFT, STOCK, agent, composite, tool
from toolcrib import Crib
from toolcrib.contracts import (
    Dependent,
    ErrorRule,
    Example,
    JsonObject,
    JsonSchema,
    RateLimit,
    RetryPolicy,
    SecretReference,
    ToolDefinition,
)
from toolcrib.contracts.workflows import ConditionBinding, StepRegistration, WorkflowDefinition

Act: TypeAlias = Callable[[Crib], Awaitable[object]]
Ask: TypeAlias = Callable[[Crib], Awaitable[Sequence[Dependent]]]


@dataclass(frozen=True)
class Change:
    """One kind of change."""

    name: str
    target: str
    """What is changed: a tool, a workflow, or a name of the vocabulary."""
    make: Act
    foresee: Ask
    """Tells before the change whom it would concern."""
    is_proposed: bool = False
    """Whether that is told with verdicts."""


def _saved(name: str, definition: ToolDefinition) -> Change:
    async def make(crib: Crib) -> None:
        await crib.save(definition)

    async def foresee(crib: Crib) -> Sequence[Dependent]:
        return (await crib.lifecycle.impact(definition.name, proposed=definition)).dependents

    return Change(name, definition.name, make, foresee, is_proposed=True)


def _done(name: str, target: str, make: Act) -> Change:
    async def foresee(crib: Crib) -> Sequence[Dependent]:
        return (await crib.lifecycle.impact(target)).dependents

    return Change(name, target, make, foresee)


def _with(schema: JsonSchema, *, required: Sequence[str] | None = None, **properties: Any) -> JsonSchema:
    """A schema with other properties; one that is null is gone."""
    new = deepcopy(schema)
    new["properties"] = {name: part for name, part in {**new["properties"], **properties}.items() if part is not None}
    new["required"] = [name for name in required or new["required"] if name in new["properties"]]
    return new


def _takes(name: str, **properties: Any) -> Change:
    return _saved(f"input: {name}", tool("stock", input_schema=_with(STOCK, **properties)))


def _gives(name: str, **properties: Any) -> Change:
    return _saved(f"output: {name}", tool("stock", output_schema=_with(LEFT, **properties)))


def _is(name: str, **fields: Any) -> Change:
    return _saved(f"field: {name}", tool("stock", **fields))


_LINES: JsonObject = {"type": "array", "items": {"type": "object", "properties": {"code": {"type": "string"}}}}
_RENAMED = _with(STOCK, sku=None, code={"type": "string"}, required=["code"])
_FALLBACK = ErrorRule(when="TIMEOUT", action="fallback", tool="price")

_OF_INPUT = (
    _takes("an optional property is gone", note=None),
    _takes("a required property is renamed", sku=None, code={"type": "string"}, required=["code"]),
    _takes("a required property is added", site={"type": "string"}, required=["sku", "site"]),
    _takes("an optional property is added", site={"type": "string"}),
    _takes("an optional property is required now", required=["sku", "unit"]),
    _takes("a required property is optional now", required=["count"]),
    _takes("a type is another one", sku={"type": "integer"}),
    _takes("a type is wider", sku={"type": ["string", "integer"]}),
    _takes("a value of an enum is gone", unit={"enum": ["piece"]}),
    _takes("a value of an enum is added", unit={"enum": ["piece", "box", "kilo"]}),
    _takes("null is refused", note={"type": "string"}),
    _takes("a default is another one", count={"type": "integer", "default": 2}),
    _takes("a default is gone", count={"type": "integer"}),
    _takes("a text must be longer", sku={"type": "string", "minLength": 3}),
    _takes("a text must fit a pattern", sku={"type": "string", "pattern": "^[0-9]+$"}),
    _takes("a number has a minimum", count={"type": "integer", "default": 1, "minimum": 1}),
    _saved("input: other properties are taken", tool("stock", input_schema={**STOCK, "additionalProperties": True})),
)
_OF_OUTPUT = (
    _gives("a property is gone", total=None),
    _gives("a property is renamed", total=None, sum={"type": "integer"}),
    _gives("a property is added", site={"type": "string"}, required=[*LEFT["required"], "site"]),
    _gives("a property need not be there", required=["by", "total", "lines"]),
    _gives("a type is another one", total={"type": "string"}),
    _gives("a list is an object", lines={"type": "object", "properties": {"sku": {"type": "string"}}}),
    _gives("an object in a list has other names", lines=_LINES),
    _gives("a value may be null", by={"type": ["string", "null"]}),
    _gives("a value is one of few", total={"enum": [1, 2]}),
    _saved("output: nothing is said of it", tool("stock", output_schema=None)),
    _saved("output: it is a list", tool("stock", output_schema={"type": "array", "items": LEFT})),
    _saved("output: it is a text", tool("stock", output_schema={"type": "string"})),
)
_OF_FIELDS = (
    _is("it writes", side_effects="writes"),
    _is("it does nothing at all", side_effects="none"),
    _is("it is idempotent", idempotent=True),
    _is("it takes a key", idempotency_key="header:Idempotency-Key"),
    _is("it can be asked what became of it", reconcile="price"),
    _is("it is transactional", transactional=True),
    _is("it is tried again", retry=RetryPolicy(count=2)),
    _is("it has less time", timeout_s=5.0),
    _is("it has more time", timeout_s=600.0),
    _is("it may put out less", max_output_bytes=1_000),
    _is("it may put out more", max_output_bytes=10_000_000),
    _is("a part of its output is selected", select="$.lines", output_schema=None),
    _is("something is called instead of it", error_handling=(_FALLBACK,)),
    _is("a failure is told in other words", error_handling=(ErrorRule(when="4xx", action="fail", message="No."),)),
    _is("its results are kept", cache="ttl", cache_ttl_s=60.0),
    _is("it runs alone", sequential=True),
    _is("a client runs it", runs_on="client"),
    _is("a person confirms it", requires_confirmation=True),
    _is("another permission is needed", security_uri="ai://tools/vault/stock/execute"),
    _is("it is in another category", category="warehouse"),
    _is("it has a secret", secrets=(SecretReference(name="t", reference="${env:T}", required=False),)),
    _is("it has a rate", rate_limit=RateLimit(count=1000, per_s=1)),
    _is("it has a lower rate", rate_limit=RateLimit(count=1, per_s=86_400)),
    _is("it costs something", cost_usd_per_call=Decimal("0.01")),
    _is("outsiders write what it brings", untrusted=True),
    _is("it may delete", deletes=True),
    _is("it is no step of workflows", available_as=("tool", "mcp_tool")),
    _is("it is disabled", enabled=False),
    _is("it is made of something else", config={"url": "https://elsewhere.test"}),
    _is("it is down", config={"fails": True}),
    _is("it is described in other words", description="What is left of something.", title="Stock", tags=("shop",)),
    _is("it has an example", examples=(Example(scenario="One.", input={"sku": "a"}),)),
    _is("it is confirmed and takes something else", input_schema=_RENAMED, requires_confirmation=True),
    _saved("kind: it is a composite", composite("stock", "price")),
)
_OF_VERSIONS = (
    _is("a patch", version="1.0.1"),
    _is("a minor version with more to give it", version="1.1.0", input_schema=_with(STOCK, site={"type": "string"})),
    _is("a minor version that breaks", version="1.1.0", input_schema=_RENAMED),
    _is("a major version that is the same", version="2.0.0"),
    _is("a major version that breaks", version="2.0.0", input_schema=_RENAMED),
    _is("a pre-release that breaks", version="2.0.0-rc.1", input_schema=_RENAMED),
    _is("a major version that is disabled", version="2.0.0", enabled=False),
    _is("an older version", version="0.9.0", input_schema=_RENAMED),
)


async def _made_anew(crib: Crib, definition: ToolDefinition) -> None:
    await crib.registry.remove("default", definition.name)
    await crib.save(definition)


async def _there_and_back(crib: Crib) -> None:
    await crib.save(tool("stock", input_schema=_RENAMED))
    await crib.save(tool("stock"))


async def _followed_and_blocked(crib: Crib) -> None:
    await crib.save(tool("stock", version="2.0.0", input_schema=_RENAMED))
    await crib.lifecycle.block("stock@1.0.0", message="Wrong.", replacement="stock@2.0.0")


_OF_LIFE = (
    _done("life: blocked", "stock", lambda crib: crib.lifecycle.block("stock", message="Wrong.")),
    _done("life: deprecated", "stock", lambda crib: crib.lifecycle.deprecate("stock", replacement="price")),
    _done("life: followed by another version, and blocked", "stock", _followed_and_blocked),
    _done("life: removed", "stock", lambda crib: crib.registry.remove("default", "stock")),
    _done("life: removed and made again", "stock", lambda crib: _made_anew(crib, tool("stock"))),
    _done("life: made anew in another way", "stock", lambda crib: _made_anew(crib, tool("stock", config={"url": "b"}))),
    _done("life: changed, and changed back", "stock", _there_and_back),
)


def _named(name: str, target: str, kind: Any, make: Act) -> Change:
    async def foresee(crib: Crib) -> Sequence[Dependent]:
        return await crib.lifecycle.impact_of_name(target, kind=kind)

    return Change(name, target, make, foresee)


_SINGLE = next(graph for graph in GRAPHS if graph.name == "single")
_OTHER = WorkflowDefinition.model_validate(
    {"name": "single", "input_schema": _SINGLE.definition.input_schema, "steps": [call("s", "price")]}
)
_STEP = StepRegistration(name="shop.stock", tool="price", input_mapping={"sku": "${input.sku}"})
_CONDITION = ConditionBinding(name="enough", parameters=("n",), expression="${n > 100}")

_OF_OTHERS = (
    _saved("composite: another operation", composite("lookup", "price")),
    _saved("composite: disabled", composite("lookup", "stock", enabled=False)),
    _done("composite: removed", "lookup", lambda crib: crib.registry.remove("default", "lookup")),
    _saved("agent: other words", agent("scout", "stock", long_description="It looks.")),
    _saved("agent: another tool", agent("scout", "price")),
    _saved("agent: disabled", agent("scout", "stock", enabled=False)),
    _done("agent: removed", "scout", lambda crib: crib.registry.remove("default", "scout")),
    _saved("workflow: published with other steps", _OTHER.tool()),
    _done("workflow: removed", "single", lambda crib: crib.workflows.remove("single")),
    _done("workflow: blocked", "single", lambda crib: crib.lifecycle.block("single")),
    _saved("fallback: its tool has none any more", tool("shaky", config={"fails": True})),
    _saved("neighbour: it is made of something else", tool("price", config={"url": "https://elsewhere.test"})),
    _named("vocabulary: a step is another tool", "shop.stock", "workflow_step", lambda crib: crib.steps.save(_STEP)),
    _named("vocabulary: a step is gone", "shop.stock", "workflow_step", lambda crib: crib.steps.remove("shop.stock")),
    _named("vocabulary: a condition is stricter", "enough", "condition", lambda crib: crib.conditions.save(_CONDITION)),
    _named("vocabulary: a condition is gone", "enough", "condition", lambda crib: crib.conditions.remove("enough")),
)

CHANGES: tuple[Change, ...] = (
    *_OF_INPUT,
    *_OF_OUTPUT,
    *_OF_FIELDS,
    *_OF_VERSIONS,
    *_OF_LIFE,
    *_OF_OTHERS,
)
