"""Everything that an author can save has an effect: some module reads it."""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest

import toolcrib
from toolcrib.contracts import AgentDefinition, Contract, ProviderDefinition, ServiceAccount, ToolDefinition
from toolcrib.contracts.workflows import ConditionBinding, StepRegistration, WorkflowDefinition
from toolcrib.kinds.table import SHAPES

SAVED = (
    ToolDefinition,
    AgentDefinition,
    WorkflowDefinition,
    StepRegistration,
    ConditionBinding,
    ProviderDefinition,
    ServiceAccount,
    *SHAPES,
)
SOURCES = Path(toolcrib.__file__).parent


def parts_of(contracts: Iterable[type[Contract]]) -> Iterator[type[Contract]]:
    """Contracts and all that their fields are made of."""
    found: set[type[Contract]] = set()
    open_: list[Any] = list(contracts)
    while open_:
        one = open_.pop()
        if isinstance(one, type) and issubclass(one, Contract) and one not in found:
            found.add(one)
            open_ += [field.annotation for field in one.model_fields.values()]
        open_ += get_args(one)
    yield from found


@cache
def names_read() -> frozenset[str]:
    """Attributes that any module reads, also in patterns."""
    nodes = [node for path in SOURCES.rglob("*.py") for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)}
    return frozenset(attributes.union(*(node.kwd_attrs for node in nodes if isinstance(node, ast.MatchClass))))


@pytest.mark.requirement("contracts.fields_are_read")
@pytest.mark.parametrize("contract", sorted(set(parts_of(SAVED)), key=str), ids=lambda one: one.__name__)
def test_0_9_every_field_that_can_be_saved_is_read(contract: type[Contract]):
    unread = sorted(contract.model_fields.keys() - names_read())

    assert unread == [], f"no module reads {unread} of {contract.__name__}; use it, or refuse it when it is saved"
