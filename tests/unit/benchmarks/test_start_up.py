"""What starts with Toolcrib loads: modules of ours, packages of others, and schemas that pydantic builds.

These are counts of one fresh process, the same on every machine. A ceiling is raised only with a reason in the same
commit; it is lowered with the commit that saves something.
"""

import ast
import asyncio
import contextlib
import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

import toolcrib
from toolcrib import Crib, tool
from toolcrib.contracts import OWNER, Contract
from toolcrib.contracts.specs.workflow_steps import WORKFLOW_LIMITS
from toolcrib.core.engines.budgets import NOTHING
from toolcrib.core.runs.journal.history import ONE_CALL

pytestmark = pytest.mark.requirement("repository.start_up")

PROBE: Final = """
import json, sys
import pydantic.type_adapter
from pydantic._internal import _model_construction

built = 0

def counted(make):
    def build(*args, **options):
        global built
        built += 1
        return make(*args, **options)
    return build

for module in (pydantic.type_adapter, _model_construction):
    module.create_schema_validator = counted(module.create_schema_validator)

async def stop(*args, **options):
    pass

try:
    {statement}
except SystemExit as end:
    assert not end.code, end.code
names = [name for name, module in sys.modules.items() if module is not None]
print()
print(json.dumps([names, built]))
"""
IMPORT: Final = "from toolcrib import Crib, tool"
COMMAND: Final = "sys.argv = ['toolcrib', *{arguments}]; from toolcrib.interfaces.cli import main; main()"
SERVER: Final = "import uvicorn; uvicorn.Server.serve = stop; "
"""The server is made and does not begin to serve."""

OF_CONTRACTS: Final = {
    "annotated_types",
    "msgspec",
    "orjson",
    "pydantic",
    "pydantic_core",
    "typing_extensions",
    "typing_inspection",
}
HEAVY: Final = {
    "aiohttp",
    "alembic",
    "cryptography",
    "docstring_parser",
    "fastapi",
    "genai_prices",
    "grpc",
    "mcp",
    "obstore",
    "psycopg",
    "redis",
    "sqlalchemy",
    "starlette",
    "uvicorn",
}


@dataclass(frozen=True)
class Loaded:
    """What a process has loaded at its end."""

    ours: frozenset[str]
    packages: frozenset[str]
    """Of others, without the standard library."""
    modules: frozenset[str]
    """Every module."""
    schemas: int


def load(statement: str, folder: Path) -> Loaded:
    program = PROBE.format(statement=statement)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=folder)
    assert ended.returncode == 0, ended.stderr
    names, schemas = json.loads(ended.stdout.splitlines()[-1])
    ours = frozenset(name for name in names if name.partition(".")[0] == "toolcrib")
    tops = {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"coverage", "toolcrib"}
    packages = frozenset(top for top in tops if not top.startswith(("_", "$")))
    return Loaded(ours, packages, frozenset(names), schemas)


@tool
def double(n: int) -> int:
    """Double a number."""
    return 2 * n


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store on SQLite with a tool and a run."""
    url = f"sqlite:///{tmp_path}/crib.db"

    async def fill() -> None:
        async with Crib(url) as crib:
            crib.add(double)
            await crib.invoke("double", {"n": 1})

    asyncio.run(fill())
    return url


def test_the_names_of_a_program_load_contracts_and_no_part_of_a_crib(tmp_path: Path) -> None:
    found = load(IMPORT, tmp_path)

    assert len(found.ours) <= 60, sorted(found.ours)
    assert found.packages <= OF_CONTRACTS
    assert not found.modules & {"asyncio", "email"}
    assert found.schemas == 0


def test_a_command_that_lists_runs_loads_its_store_and_no_program_of_a_run(store: str, tmp_path: Path) -> None:
    found = load(COMMAND.format(arguments=["run", "list", "--store", store]), tmp_path)

    assert len(found.ours) <= 402, sorted(found.ours)
    assert found.packages & HEAVY == {"sqlalchemy"}
    assert not found.modules & {"sqlalchemy.dialects.postgresql", "toolcrib.agents.programs"}
    assert found.schemas <= 14


def test_a_server_that_has_not_been_asked_loads_no_program_of_a_run(store: str, tmp_path: Path) -> None:
    found = load(SERVER + COMMAND.format(arguments=["up", "--port", "0", "--store", store]), tmp_path)

    assert len(found.ours) <= 518, sorted(found.ours)
    assert found.packages & HEAVY == {"fastapi", "sqlalchemy", "starlette", "uvicorn"}
    assert not found.modules & {"rich", "sqlalchemy.dialects.postgresql", "toolcrib.agents.programs"}
    assert found.schemas <= 53


PACKAGES: Final = [found.name for found in pkgutil.walk_packages(toolcrib.__path__, "toolcrib.") if found.ispkg]


def test_names_that_load_when_used_are_those_that_a_type_checker_sees() -> None:
    lazy = 0
    for name in PACKAGES:
        package = importlib.import_module(name)
        source = Path(str(package.__file__)).read_text(encoding="utf-8")
        table = getattr(package, "__getattr__", None)
        if table is None:
            continue
        lazy += 1
        seen = {
            alias.name: node.module
            for branch in ast.parse(source).body
            if isinstance(branch, ast.If)
            for node in branch.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        assert inspect.getclosurevars(table).nonlocals["modules"] == seen, name
        assert seen.keys() == set(package.__all__), name
        below = {found.name for found in pkgutil.iter_modules(package.__path__)}
        assert not below & seen.keys(), f"{name}: a module has the name of what the package offers"
    assert lazy > 20


def test_a_package_refuses_a_name_that_it_does_not_have() -> None:
    with pytest.raises(AttributeError, match=r"module 'toolcrib\.contracts' has no attribute 'Nothing'"):
        importlib.import_module("toolcrib.contracts").Nothing  # noqa: B018


def subclasses(of: type[Contract]) -> Iterator[type[Contract]]:
    for each in of.__subclasses__():
        yield each
        yield from subclasses(each)


def test_defaults_that_no_validator_has_seen_are_valid() -> None:
    for name in PACKAGES:
        for found in pkgutil.iter_modules(importlib.import_module(name).__path__, f"{name}."):
            if "migrations" not in found.name and not found.name.endswith(("jail_program", "_worker")):
                with contextlib.suppress(ModuleNotFoundError):
                    importlib.import_module(found.name)
    defaults = [
        field.default
        for model in subclasses(Contract)
        for field in model.model_fields.values()
        if isinstance(field.default, Contract)
    ]
    assert len(defaults) > 20
    for given in [*defaults, OWNER, WORKFLOW_LIMITS, ONE_CALL, NOTHING]:
        assert type(given).model_validate(given.model_dump(exclude_unset=True)) == given
