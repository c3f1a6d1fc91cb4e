"""Each example in a docstring of the synchronous crib runs as it stands there, with the names of `test_docstrings`."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

import toolcrib
from tests.docs import test_docstrings as asynchronous
from toolcrib import EgressPolicy, ScriptedModel, contracts, sync, testing
from toolcrib.sync import acting, agents, conversations, crib, handles, imports, providers, runs, tools, workflows

pytestmark = pytest.mark.requirement("docs.docstrings", "sync.complete")

MODULES = (acting, agents, conversations, crib, handles, imports, providers, runs, tools, workflows, sync)


def documented() -> list[tuple[str, str]]:
    """Name and text of each example."""
    found = list[tuple[str, str]]()
    for module in MODULES:
        found += [(module.__name__, block) for block in asynchronous.examples_of(module.__doc__)]
        for owner in vars(module).values():
            if isinstance(owner, type) and owner.__module__ == module.__name__:
                for name, value in (("", owner), *vars(owner).items()):
                    function = getattr(value, "__func__", value)
                    text = function.__doc__ if callable(function) else None
                    found += [(f"{owner.__name__}.{name}".strip("."), one) for one in asynchronous.examples_of(text)]
    return found


def prepare_names(made: sync.Crib) -> dict[str, Any]:
    """The names that an example finds, as in `test_docstrings`."""
    tools_of_examples = ("search_deals", "update_deals", "send_offer", "print_label")
    made.add(*(getattr(asynchronous, name) for name in tools_of_examples))
    stages = toolcrib.ReferenceSource(name="stages", values=({"id": "won", "label": "Won"},))
    made.save_provider(
        contracts.ProviderDefinition(name="crm", base_url="https://api.crm.example", reference_data=(stages,))
    )
    empty: list[Any] = []
    document, new_document = (
        asynchronous.openapi_of(parameters) for parameters in (empty, [{"name": "stage", **asynchronous.REQUIRED}])
    )
    made.imports.openapi(document, name="deals_api")
    names: dict[str, Any] = {name: getattr(contracts, name) for name in contracts.__all__}
    names |= {name: getattr(toolcrib, name) for name in toolcrib.__all__}
    names |= {name: getattr(asynchronous, name) for name in tools_of_examples}
    company = {"type": "object", "properties": {"company": {"type": "string"}}, "required": ["company"]}
    steps: list[toolcrib.WorkflowStep | dict[str, Any]] = [
        {"name": "deals", "tool": "search_deals", "input": {"company": "${input.company}"}},
        {"name": "moved", "tool": "update_deals", "input": {"ids": "${deals[*].id}", "stage": "Won"}},
    ]
    model, chosen = asynchronous.MODEL, ["search_deals", "update_deals"]
    return names | {
        "__name__": "example",
        "Crib": sync.Crib,
        "asyncio": asyncio,
        "crib": made,
        "desk": made.agent("desk", model=model, tools=["search_deals"]),
        "deals": made.agentic_tool("deals", mode="deterministic", model=model, steps=chosen),
        "move": made.workflow("move", input_schema=company, steps=steps),
        "document": document,
        "new_document": new_document,
    }


@pytest.mark.parametrize(("name", "block"), documented())
def test_an_example_of_the_synchronous_crib_runs(
    name: str, block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not re.search(r"\basync (with|for)\b", block)
    code = compile(block, name, "exec")
    if name in asynchronous.NOT_RUN:
        return
    environment = asynchronous.prepare_environment(tmp_path)
    monkeypatch.chdir(tmp_path)
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    models = {
        asynchronous.MODEL: ScriptedModel(asynchronous.answer),
        "openai:gpt-5": ScriptedModel(asynchronous.answer),
    }
    rules, clock = EgressPolicy(hosts=()), testing.FrozenClock()
    with sync.Crib("memory://", models=models, environment=environment, egress=rules, clock=clock) as made:
        names = prepare_names(made)
        exec(compile(block.replace("Crib()", "crib"), name, "exec") if "Crib()" in block else code, names)
        made.open()
        for other in {one for one in names.values() if isinstance(one, sync.Crib)} - {made}:
            other.close()


def test_there_are_as_many_examples_as_asynchronous_ones() -> None:
    of_cribs = {one.name for one in asynchronous.methods() if one.examples} - asynchronous.INTERNAL.keys()
    names = {name for name, _ in documented()}
    missing = {name.replace("Definer.", "Crib.") for name in of_cribs} - names
    assert missing <= {"Definer.invoke"}
