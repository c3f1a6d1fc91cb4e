"""`toolcrib up` (the server), `toolcrib worker` (drives runs only) and `toolcrib restate` (configures Restate)."""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from toolcrib.interfaces.cli.support.commands import prints
from toolcrib.interfaces.cli.support.groups import Group, command
from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, AsJson, Store

ServerHost = Annotated[
    str | None, typer.Option(help="Address to listen on, instead of TOOLCRIB_SERVER_HOST.", show_default=False)
]
ServerPort = Annotated[
    int | None,
    typer.Option(help="Port to listen on, instead of TOOLCRIB_SERVER_PORT.", min=0, max=65535, show_default=False),
]


Application = Annotated[
    str | None,
    typer.Argument(
        metavar="APP",
        help="The application's Crib, or a function that returns one, as module:name; for tools that are Python "
        "functions.",
        show_default=False,
    ),
]


def up(
    app: Application = None,
    *,
    host: ServerHost = None,
    port: ServerPort = None,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Serve the REST interface and drive runs, until stopped.

    With APP, the Python functions of the application are served too. With --json, what it reports is one JSON object
    per line on stdout.
    """
    from toolcrib.contracts import InvalidSettings
    from toolcrib.contracts.base.errors import missing_extra
    from toolcrib.crib.settings import load_settings

    try:
        from toolcrib.interfaces.server import serve
    except ModuleNotFoundError as missing:
        raise InvalidSettings(missing_extra("the server", missing.name, "server")) from missing
    from toolcrib.interfaces.cli.support.applications import load_crib

    settings = load_settings({"store": store, "server.host": host, "server.port": port}).settings
    crib = None if app is None else load_crib(app, store=store)
    if as_json:
        serve(settings, crib, lambda url: _report("ready", url))
        _report("stopped")
    else:
        serve(settings, crib)


def _report(event: Literal["ready", "stopped"], url: str | None = None) -> None:
    """Print an event of a process as a line of JSON."""
    from toolcrib.interfaces.cli.render.documents import ProcessEvent

    print(ProcessEvent(event=event, url=url).model_dump_json(), flush=True)


if TYPE_CHECKING:
    from toolcrib.core.engines.restate import WorkerTerms
    from toolcrib.crib import Crib
    from toolcrib.crib.settings import Settings
    from toolcrib.interfaces.cli.render.documents import RestateConfig

EngineOption = Annotated[
    str | None, typer.Option("--engine", help="local or restate, instead of TOOLCRIB_ENGINE.", show_default=False)
]
Host = Annotated[
    str | None, typer.Option(help="Address to listen on, instead of TOOLCRIB_RESTATE_WORKER_HOST.", show_default=False)
]
Port = Annotated[
    int | None,
    typer.Option(help="Port to listen on, instead of TOOLCRIB_RESTATE_WORKER_PORT.", min=0, max=65535),
]
Register = Annotated[bool, typer.Option(help="Tell Restate where this worker is.")]


def worker(
    app: Application = None,
    *,
    engine: EngineOption = None,
    host: Host = None,
    port: Port = None,
    register: Register = True,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Drive the runs of a store until stopped; serve no requests.

    With --json, what it reports is one JSON object per line on stdout.
    """
    from toolcrib.core.engines.restate import WorkerTerms
    from toolcrib.crib import Crib
    from toolcrib.crib.settings import load_settings
    from toolcrib.interfaces.cli.support.applications import load_crib

    settings = load_settings({"store": store, "engine": engine}).settings
    crib = Crib.from_settings(settings) if app is None else load_crib(app, store=store, engine=engine)
    terms = WorkerTerms(register=register, host=host, port=port, drain_s=settings.server.drain_s)

    def ready(url: str | None) -> None:
        if as_json:
            _report("ready", url)
        elif url is None:
            print("A worker drives the runs of the store", flush=True)
        else:
            print(f"A worker for Restate listens on {url}", flush=True)

    asyncio.run(_work(crib, settings, terms, ready))
    if as_json:
        _report("stopped")


async def _work(
    crib: "Crib", settings: "Settings", terms: "WorkerTerms", ready: "Callable[[str | None], None]"
) -> None:
    from toolcrib.contracts import InvalidSettings
    from toolcrib.core.engines.restate import RestateEngine
    from toolcrib.crib.maintenance import maintenance_loop

    engine = crib.engine
    found = "restate" if isinstance(engine, RestateEngine) else "local"
    if found != settings.engine:
        msg = (
            f"the application's crib has the engine {found!r} and the settings say {settings.engine!r}; make it with "
            "Crib.from_settings(), so that both have the same"
        )
        raise InvalidSettings(msg)
    async with crib, maintenance_loop(crib):
        if isinstance(engine, RestateEngine):
            await engine.worker.serve(terms, ready)
        else:
            await _serve_alone(crib, terms, ready)


async def _serve_alone(crib: "Crib", terms: "WorkerTerms", ready: "Callable[[str | None], None]") -> None:
    """Drive runs in this process until SIGTERM or SIGINT."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with asyncio.TaskGroup() as beside:
        serving = beside.create_task(crib.engine.serve())
        ready(None)
        await stop.wait()
        await crib.engine.drain(terms.drain_s)
        serving.cancel()


app = Group("Configure a Restate server.")

Data = Annotated[Path, typer.Option("--data", metavar="FOLDER", file_okay=False, help="Folder for the server's data.")]


def _print_toml(found: "RestateConfig") -> None:
    print(found.toml, end="")


@command(app, "config", example="toolcrib restate config > restate.toml")
@prints(_print_toml)
def config(data: Data = Path("restate-data")) -> "RestateConfig":
    """Print a restate.toml that suits Toolcrib.

    It listens on loopback only, sends no telemetry, and has limits that workers can keep.
    """
    from toolcrib.core.engines.restate.options import server_config
    from toolcrib.crib.settings import load_settings
    from toolcrib.interfaces.cli.render.documents import RestateConfig

    return RestateConfig(toml=server_config(load_settings().settings.restate, data.absolute()))
