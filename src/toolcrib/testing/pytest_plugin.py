"""Fixtures for pytest: `crib`, `frozen_clock`, `scripted` and `recorded_models`.

They work in synchronous tests, with pytest-asyncio and with anyio (on asyncio). An `async def` test that uses one of
them runs without such a plugin too. pytest loads this module where Toolcrib
is installed; it imports nothing else of Toolcrib until a test uses a fixture.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

if TYPE_CHECKING:
    from toolcrib.crib import Crib
    from toolcrib.llm import Request, ScriptedModel
    from toolcrib.llm.models.scripted import ScriptedAnswer
    from toolcrib.testing import FrozenClock, RecordMode, ScriptModels


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--toolcrib-record`."""
    parser.getgroup("toolcrib").addoption(
        "--toolcrib-record",
        choices=("once", "none", "all"),
        default="once",
        help="recorded_models: record models if there is no file (once), never (none), or again (all)",
    )


_FIXTURES = frozenset({"crib", "frozen_clock", "scripted", "recorded_models"})


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an `async def` test that uses one of the fixtures, if no other plugin does."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test) or _FIXTURES.isdisjoint(pyfuncitem.fixturenames):
        return None
    asyncio.run(test(**{name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters}))
    return True


@pytest.fixture
def frozen_clock() -> FrozenClock:
    """The clock of `crib`, which stands still: see `toolcrib.testing.FrozenClock`."""
    from toolcrib.testing import FrozenClock  # noqa: PLC0415

    return FrozenClock()


@pytest.fixture
def crib(frozen_clock: FrozenClock) -> Generator[Crib]:
    """A crib in memory, without network, environment and models: see `toolcrib.testing.new_crib`.

    Define a fixture `crib` of your own to add tools and agents; the other fixtures use it.
    """
    from toolcrib.testing import cribs  # noqa: PLC0415

    made = cribs.new_crib(clock=frozen_clock)
    yield made
    cribs.close(made, frozen_clock)


@pytest.fixture
def scripted(crib: Crib) -> Generator[ScriptModels]:
    """A function that has a scripted model answer: `scripted(calls("search", text="Acme"), says("Done."))`."""
    from toolcrib.testing import ScriptedModel, override_models  # noqa: PLC0415

    with ExitStack() as overrides:

        def script(
            *answers: ScriptedAnswer | Callable[[Request], ScriptedAnswer], model: str | None = None
        ) -> ScriptedModel:
            function = answers[0] if len(answers) == 1 and callable(answers[0]) else None
            made = ScriptedModel(function or cast("tuple[ScriptedAnswer, ...]", answers))
            overrides.enter_context(override_models(crib, made if model is None else {model: made}))
            return made

        yield script


@pytest.fixture
def recorded_models(crib: Crib, request: pytest.FixtureRequest) -> Generator[Path]:
    """Record what real models answer in the test, and replay it from then on: see `toolcrib.testing.record_models`.

    The file is `recordings/TEST FILE/TEST.json` beside the test. To record, the fixture `crib` must have a key and
    network. A new recording of a test that fails is not kept.
    """
    from toolcrib.testing import record_models  # noqa: PLC0415

    name = re.sub(r"[^\w.-]+", "-", request.node.name).strip("-")
    path = request.path.parent / "recordings" / request.path.stem / f"{name}.json"
    mode = cast("RecordMode", request.config.getoption("--toolcrib-record"))
    existed, failed = path.exists(), request.session.testsfailed
    with record_models(crib, path, mode=mode):
        yield path
    if not existed and request.session.testsfailed > failed:
        path.unlink(missing_ok=True)
