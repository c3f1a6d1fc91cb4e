"""Workers as commands, on a real server: how they are started, share a port, and are told to stop."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.servers.ports import free_port
from tests.servers.restate import RestateServer, running_restate
from tests.twins import ManualClock
from tests.unit.agents.crm import Crm
from tests.unit.cli.command import toolcrib
from tests.unit.engines_restate.shop import until
from toolcrib import Crib, SharingOptions
from toolcrib.contracts import InvalidInput, NotFound
from toolcrib.core.engines.restate import RestateEngine, RestateOptions, WorkerTerms
from toolcrib.interfaces.cli.support.applications import load_crib

pytestmark = pytest.mark.requirement("restate.command")

PROGRAM = Path(sys.executable).with_name("toolcrib")
APPLICATION = '''
from toolcrib import Crib, tool

@tool(side_effects="reads")
async def double(number: int) -> int:
    """Double it."""
    return number * 2

def make():
    crib = Crib.from_settings()
    crib.add(double)
    return crib

number = 7
'''


@pytest.fixture(scope="module")
def server() -> Generator[RestateServer]:
    with running_restate(worker_port=free_port()) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "shop_app.py").write_text(APPLICATION)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "shop_app", raising=False)
    return tmp_path


class Commands:
    """Processes of the program, in a folder."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self.running: list[subprocess.Popen[str]] = []

    def start(self, *arguments: str) -> str:
        """Start one, and return the first line that it prints."""
        command = [PROGRAM, *arguments]
        process = subprocess.Popen(
            command, cwd=self._folder, env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.running.append(process)
        assert process.stdout is not None
        return process.stdout.readline()

    def stop(self) -> None:
        """Tell all of them to stop; they must do so well, and none may have failed on the way."""
        for process in self.running:
            process.terminate()
        for process in self.running:
            _, complaints = process.communicate(timeout=60)
            assert (process.returncode, "Traceback" in complaints) == (0, False), complaints


@pytest.mark.slow
@pytest.mark.requirement("restate.workers")
async def test_workers_of_an_application_share_a_port_and_stop_when_they_are_told_to(
    folder: Path, server: RestateServer, monkeypatch: pytest.MonkeyPatch
):
    environment = {**server.environment(), "TOOLCRIB_STORE": f"sqlite:///{folder}/crib.db"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    commands = Commands(folder, {**os.environ, **environment})
    lines = await asyncio.gather(*(asyncio.to_thread(commands.start, "worker", "shop_app:make") for _ in range(2)))
    try:
        assert set(lines) == {f"A worker for Restate listens on http://127.0.0.1:{server.options.worker_port}\n"}
        await until(lambda: server.workers)
        async with load_crib("shop_app:make") as crib:
            results = await asyncio.gather(*(crib.invoke("double", {"number": number}) for number in range(8)))
        assert [result.output for result in results] == [number * 2 for number in range(8)]
        assert len(server.workers) == 1
    finally:
        commands.stop()


async def test_a_worker_that_is_told_to_stop_while_it_starts_does_so():
    options = RestateOptions(worker_port=0)

    def told(url: str) -> None:
        del url
        os.kill(os.getpid(), signal.SIGTERM)

    async with Crib("memory://", sharing=SharingOptions(restate=options)) as crib:
        assert isinstance(crib.engine, RestateEngine)
        async with asyncio.timeout(30):
            await crib.engine.worker.serve(WorkerTerms(register=False), told)


@pytest.mark.slow
async def test_a_worker_of_the_local_engine_drives_what_others_have_begun(folder: Path):
    environment = {**os.environ, "TOOLCRIB_STORE": f"sqlite:///{folder}/crib.db"}
    commands = Commands(folder, environment)
    line = await asyncio.to_thread(commands.start, "worker", "shop_app:make")
    try:
        assert line == "A worker drives the runs of the store\n"
        async with Crib(environment["TOOLCRIB_STORE"]) as crib:
            run_id = await crib.submit("double", {"number": 21})
            while not (run := await crib.store.journal.run(run_id)).ended:
                await crib.clock.sleep(0.05)
        assert run.output == 42
    finally:
        commands.stop()


@pytest.mark.slow
@pytest.mark.requirement("retention.schedule")
@pytest.mark.parametrize("engine", ["local", "restate"])
async def test_a_worker_prunes_as_the_settings_want_it(folder: Path, engine: str):
    store = f"sqlite:///{folder}/crib.db"
    async with Crib(store, clock=ManualClock(datetime(2020, 1, 1, tzinfo=UTC))) as crib:
        crib.add(*Crm(1).tools)
        old = await crib.invoke("search_deals", {"company": "Acme"})
    commands = Commands(folder, {**os.environ, "TOOLCRIB_STORE": store, "TOOLCRIB_RETENTION_RUNS_DAYS": "30"})
    arguments = ("worker", "--engine", engine, "--port", "0", "--no-register")
    await asyncio.to_thread(commands.start, *arguments)
    try:
        async with Crib(store) as crib:
            while not (prunings := await crib.store.retention.prunings("default")):
                await crib.clock.sleep(0.05)
            assert [pruning.counts.runs for pruning in prunings] == [1]
            with pytest.raises(NotFound, match="may have been pruned"):
                await crib.trace(old.run_id)
    finally:
        commands.stop()


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("shop_app", "not of the form module:name"),
        ("nowhere_app:make", "no module 'nowhere_app'"),
        ("shop_app:number", "of type int, not a Crib"),
        ("shop_app:absent", "has no .absent.; it has functions without parameters: make"),
    ],
)
def test_an_application_that_has_no_crib_is_refused(folder: Path, name: str, complaint: str):
    with pytest.raises(InvalidInput, match=complaint):
        load_crib(name)


def databases(folder: Path) -> list[str]:
    return [file.name for file in folder.glob("*.db")]


async def test_an_application_that_asks_for_settings_has_what_the_command_line_says(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TOOLCRIB_STORE", f"sqlite:///{folder}/other.db")
    async with load_crib("shop_app:make", store=f"sqlite:///{folder}/crib.db", engine="restate") as crib:
        assert isinstance(crib.engine, RestateEngine)
    assert databases(folder) == ["crib.db"]
    assert os.environ["TOOLCRIB_STORE"].endswith("other.db")
    assert "TOOLCRIB_ENGINE" not in os.environ


def test_an_application_that_lacks_a_module_itself_says_which(folder: Path):
    (folder / "lacking_app.py").write_text("import a_module_that_is_not_there\n")
    with pytest.raises(ModuleNotFoundError, match="a_module_that_is_not_there"):
        load_crib("lacking_app:crib")


def test_an_application_whose_engine_is_another_is_refused(folder: Path):
    store = f"sqlite:///{folder}/crib.db"
    (folder / "local_app.py").write_text(f"from toolcrib import Crib\ncrib = Crib({store!r})\n")
    refused = toolcrib("worker", "local_app:crib", "--engine", "restate", store=store)
    assert refused.exit_code == 2
    assert "has the engine 'local' and the settings say 'restate'" in refused.stderr


@pytest.mark.requirement("restate.optional")
def test_a_worker_without_its_packages_names_them(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "hypercorn", None)
    refused = toolcrib("worker", "--engine", "restate", store=f"sqlite:///{folder}/crib.db")
    assert (refused.exit_code, "pip install 'toolcrib[restate]'" in refused.stderr) == (2, True)


@pytest.mark.requirement("restate.optional")
def test_a_worker_that_cannot_listen_says_where(folder: Path):
    refused = toolcrib("worker", "--engine", "restate", "--host", "192.0.2.1", store=f"sqlite:///{folder}/crib.db")
    assert refused.exit_code == 2
    assert "cannot listen on 192.0.2.1 port 9080" in refused.stderr


def test_a_worker_that_listens_everywhere_must_be_told_how_it_is_reached(folder: Path):
    refused = toolcrib("worker", "--engine", "restate", "--host", "0.0.0.0", store=f"sqlite:///{folder}/crib.db")
    assert (refused.exit_code, "needs restate.worker_url" in refused.stderr) == (2, True)


@pytest.mark.requirement("restate.optional")
def test_a_process_that_is_no_worker_loads_nothing_of_restate_s_library():
    code = (
        "import sys; from toolcrib import Crib, SharingOptions; "
        "from toolcrib.core.engines.restate import RestateOptions; "
        "Crib('memory://', sharing=SharingOptions(restate=RestateOptions())); "
        "print(sorted({'restate', 'hypercorn', 'h2'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
