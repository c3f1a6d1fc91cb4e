"""Every kind of tool."""

from collections.abc import Iterator

import pytest

from tests.contract.conformance.kind import Kind
from tests.contract.conformance.kind_a2a import A2aKind
from tests.contract.conformance.kind_agent import AgentKind
from tests.contract.conformance.kind_agentic import AgenticKind
from tests.contract.conformance.kind_code import CodeKind
from tests.contract.conformance.kind_composite import CompositeKind
from tests.contract.conformance.kind_entity import EntityKind
from tests.contract.conformance.kind_graphql import GraphqlKind
from tests.contract.conformance.kind_grpc import GrpcKind
from tests.contract.conformance.kind_http import HttpKind
from tests.contract.conformance.kind_mcp import McpKind
from tests.contract.conformance.kind_python import ClientKind, PythonKind
from tests.contract.conformance.world import Behaviour

KINDS: tuple[type[Kind], ...] = (
    PythonKind,
    HttpKind,
    McpKind,
    GrpcKind,
    GraphqlKind,
    A2aKind,
    EntityKind,
    CodeKind,
    CompositeKind,
    AgenticKind,
    AgentKind,
    ClientKind,
)

every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


every_kind_that_writes = pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind.only_reads is None], ids=lambda kind: kind.name
)


def kinds_that(*behaviours: Behaviour) -> pytest.MarkDecorator:
    """The kinds whose tools can behave so."""
    able = (kind for kind in KINDS if not any(behaviour in kind.cannot for behaviour in behaviours))
    return pytest.mark.parametrize("kind", list(able), ids=lambda kind: kind.name)


def excuses() -> Iterator[tuple[str, Behaviour, str]]:
    """What kinds cannot show, and why."""
    for kind in KINDS:
        for behaviour, why in kind.cannot.items():
            yield kind.name, behaviour, why
