"""The plugin for pytest, in sessions of its own."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.requirement("testing.pytest")

ROOT = Path(__file__).parents[3]
PLUGIN = ("-p", "no:toolcrib", "-p", "toolcrib.testing.pytest_plugin", "-p", "no:cacheprovider", "-p", "no:randomly")
COMMON = """
import pytest
from toolcrib import tool
from toolcrib.testing import advance, approve, assert_called, calls, says

@tool(side_effects="reads")
def search(text: str) -> list[str]:
    "Search."
    return [text]

@tool(side_effects="writes", requires_confirmation=True)
def send(to: str) -> str:
    "Send."
    return to

async def use(crib, scripted):
    crib.add(search, send)
    desk = crib.agent("desk", model="anthropic:claude-sonnet-4", tools=[search, send])
    model = scripted(calls("search", text="Acme"), calls("send", to="ann"), says("Done."))
    waiting = await desk("Please")
    answer = await approve(crib, waiting)
    assert (answer.output, len(model.requests)) == ("Done.", 3)
    await assert_called(crib, answer, "search", text="Acme")

async def pause(crib, frozen_clock):
    began = frozen_clock.now()
    rest = crib.workflow("rest", steps=[{"name": "pause", "wait": {"seconds": 3600}}])
    await rest()
    [done] = await advance(crib, hours=1)
    assert done.ok and (frozen_clock.now() - began).seconds == 3600
"""


def run(pytester: pytest.Pytester, tests: str, *options: str, ini: str = "") -> pytest.RunResult:
    pytester.makeini(f"[pytest]\nfilterwarnings = error\n{ini}")
    pytester.makepyfile(COMMON + tests)
    return pytester.runpytest_subprocess(*PLUGIN, "-p", "no:xdist", *options)


def test_the_fixtures_work_in_synchronous_tests_and_use_the_crib_of_the_tests(pytester: pytest.Pytester):
    tests = """
import asyncio

def test_use(crib, scripted):
    asyncio.run(use(crib, scripted))

def test_twice(crib, scripted):
    crib.add(search)
    for text in "ab":
        assert asyncio.run(crib.call("search", text=text)).output == [text]

def test_pause(crib, frozen_clock):
    asyncio.run(pause(crib, frozen_clock))

def test_a_loop_that_stays_open(crib, scripted, frozen_clock):
    loop = asyncio.new_event_loop()
    loop.run_until_complete(use(crib, scripted))
    assert frozen_clock.loop is loop
    test_a_loop_that_stays_open.loop = loop

def test_close():
    test_a_loop_that_stays_open.loop.close()

def test_function(crib, scripted):
    scripted(lambda request: says(request.messages[-1].text.upper()))
    desk = crib.agent("desk", model="openai:gpt-5")
    assert asyncio.run(desk("hello")).output == "HELLO"

def test_one_model(crib, scripted):
    scripted(says("first"), model="openai:gpt-5")
    desk, other = crib.agent("desk", model="openai:gpt-5"), crib.agent("other", model="openai:gpt-4o")
    assert asyncio.run(desk("hello")).output == "first"
    assert "has no script" in asyncio.run(other("hello")).error.message

class TestOwnCrib:
    @pytest.fixture
    def crib(self, crib):
        crib.add(search)
        return crib

    def test_own(self, crib, scripted):
        desk = crib.agent("desk", model="openai:gpt-5", tools=["search"])
        scripted(calls("search", text="a"), says("own"))
        assert asyncio.run(desk("hello")).output == "own"
"""
    run(pytester, tests, "-p", "no:asyncio", "-p", "no:anyio").assert_outcomes(passed=8)


@pytest.mark.parametrize("mode", ["auto", "strict"])
def test_the_fixtures_work_with_pytest_asyncio(pytester: pytest.Pytester, mode: str):
    tests = """
@pytest.mark.asyncio
async def test_use(crib, scripted):
    await use(crib, scripted)

@pytest.mark.asyncio(loop_scope="module")
async def test_pause(crib, frozen_clock):
    await pause(crib, frozen_clock)
"""
    options = f"asyncio_mode = {mode}\nasyncio_default_fixture_loop_scope = function"
    run(pytester, tests, "-p", "no:anyio", ini=options).assert_outcomes(passed=2)


@pytest.mark.parametrize("plugins", [("-p", "no:asyncio", "-p", "no:anyio"), ("-p", "no:asyncio"), ()])
def test_asynchronous_tests_that_use_the_fixtures_need_no_plugin(pytester: pytest.Pytester, plugins: tuple[str, ...]):
    tests = """
@pytest.fixture
def crib(frozen_clock):
    from toolcrib.testing import new_crib
    return new_crib(clock=frozen_clock)

@pytest.mark.parametrize("text", ["a", "b"])
async def test_use(crib, scripted, text):
    await use(crib, scripted)

class TestPause:
    async def test_pause(self, crib, frozen_clock):
        await pause(crib, frozen_clock)

async def test_failing(crib):
    assert crib is None
"""
    ini = "" if plugins else "asyncio_default_fixture_loop_scope = function"
    run(pytester, tests, *plugins, ini=ini).assert_outcomes(passed=3, failed=1)


def test_the_fixtures_work_with_anyio(pytester: pytest.Pytester):
    tests = """
pytestmark = pytest.mark.anyio

@pytest.fixture
def anyio_backend():
    return "asyncio"

async def test_use(crib, scripted):
    await use(crib, scripted)

async def test_pause(crib, frozen_clock):
    await pause(crib, frozen_clock)
"""
    run(pytester, tests, "-p", "no:asyncio").assert_outcomes(passed=2)


RECORDED = """
import asyncio, os
from toolcrib import ScriptedModel
from toolcrib.testing import new_crib

@pytest.fixture
def crib():
    given = os.environ.get("SAYS")
    return new_crib(models={"openai:gpt-5": ScriptedModel([given])} if given else None)

@pytest.mark.parametrize("text", ["hello/you"])
def test_recorded(crib, recorded_models, text):
    answer = asyncio.run(crib.agent("desk", model="openai:gpt-5")(text))
    assert answer.output == "Recorded."
"""


def test_models_are_recorded_once_and_only_for_tests_that_pass(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
):
    plain = ("-p", "no:asyncio", "-p", "no:anyio")
    outcomes: list[dict[str, int]] = []
    for said, mode in (("Wrong.", "once"), ("", "none"), ("Recorded.", "once"), ("", "once")):
        monkeypatch.setenv("SAYS", said)
        outcomes.append(run(pytester, RECORDED, f"--toolcrib-record={mode}", *plain).parseoutcomes())
    [file] = pytester.path.glob("recordings/*/*.json")

    assert [next(iter(each)) for each in outcomes] == ["failed", "errors", "passed", "passed"]
    assert file.name == "test_recorded-hello-you.json"


def test_the_package_names_the_plugin():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert project["entry-points"]["pytest11"] == {"toolcrib": "toolcrib.testing.pytest_plugin"}


@pytest.mark.requirement("testing.light")
def test_the_plugin_loads_no_crib_and_the_rest_no_pytest():
    program = """
import json, sys
import toolcrib.testing.pytest_plugin
loaded = [name for name in sys.modules if name.startswith("toolcrib")]
del sys.modules["toolcrib.testing.pytest_plugin"]
for name in [name for name in sys.modules if name.split(".")[0] in ("pytest", "_pytest")]:
    del sys.modules[name]
from toolcrib import testing
for name in testing.__all__:
    getattr(testing, name)
print(json.dumps([loaded, "pytest" in sys.modules]))
"""
    answered = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded, has_pytest = json.loads(answered.stdout)

    assert len(loaded) < 12, loaded
    assert not has_pytest
