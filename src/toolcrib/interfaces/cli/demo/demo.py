"""`toolcrib demo`: finds and runs the examples.

The examples are beside the source in a checkout, and inside the package if it was installed from a wheel.
"""

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Coroutine
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

import toolcrib
from toolcrib.interfaces.cli.support.commands import print_json
from toolcrib.interfaces.cli.support.groups import Group, command
from toolcrib.interfaces.cli.support.session import AsJson, BaseUrl, Model

_PACKAGE = Path(toolcrib.__file__).parent


def make_importable() -> None:
    """Let `import examples.crm` find the examples.

    Raises:
        NotFound: They were not installed.
    """
    from toolcrib.contracts import NotFound

    for folder in (_PACKAGE / "_bundled", _PACKAGE.parents[1]):
        if (folder / "examples" / "crm" / "demo.py").is_file():
            if str(folder) not in sys.path:
                sys.path.insert(0, str(folder))
            return
    msg = f"the examples are neither in {_PACKAGE} nor beside it; install toolcrib from its wheel or a checkout"
    raise NotFound(msg)


def require(extra: str, *packages: str) -> None:
    """Check that the packages of an extra are installed.

    Raises:
        InvalidSettings: One is not.
    """
    from toolcrib.contracts import InvalidSettings

    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        msg = f"this needs {' and '.join(missing)}, which is not installed: pip install 'toolcrib[{extra}]'"
        raise InvalidSettings(msg)


T = TypeVar("T")

app = Group("Run a demonstration.")

Task = Annotated[str | None, typer.Option(metavar="TEXT", help="Another task, in plain words.", show_default=False)]
Keep = Annotated[bool, typer.Option("--keep", help="Keep what the demonstration made, the journal above all.")]
Database = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        dir_okay=False,
        show_default=False,
        help="The CRM's database; created if it does not exist. An existing one keeps all its earlier changes.",
    ),
]
Journal = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        show_default=False,
        help="Where the run is kept, instead of in the demonstration's own folder; TOOLCRIB_STORE says the same.",
    ),
]


@command(app, "crm", example="toolcrib demo crm --keep")
def crm(
    *,
    as_json: AsJson = False,
    model: Model = None,
    base_url: BaseUrl = None,
    keep: Keep = False,
    task: Task = None,
    db: Database = None,
    store: Journal = None,
) -> None:
    """Change the data of a small CRM by a task in words.

    The tools come from the CRM's OpenAPI document. The exit status is 0 if the CRM's database is right: all deals that
    the task means are changed, and no others.
    """
    from toolcrib.interfaces.cli.demo.demo import make_importable

    make_importable()
    from examples.crm import demo as crm_demo
    from examples.models import check_model
    from toolcrib.interfaces.cli.demo import reports

    store, model, base_url = _choose_settings(store, model, base_url)
    check_model(model, base_url, scripted=crm_demo.SCRIPTED)
    folder = Path(tempfile.mkdtemp(prefix="toolcrib-demo-"))
    files = reports.Files(folder, db=db or folder / "crm.db", store=store or f"sqlite:///{folder / 'toolcrib.db'}")
    if not as_json:
        scripted = "a planner made of rules" if model in {None, crm_demo.SCRIPTED} else None
        reports.announce(model or crm_demo.SCRIPTED, scripted=scripted, command="toolcrib demo crm")
    outcome = _run(
        crm_demo.demonstrate(
            task or crm_demo.TASK, folder=folder, db=files.db, store=files.store, model=model, base_url=base_url
        ),
        folder,
    )
    kept = keep or not outcome.ok
    if not kept:
        shutil.rmtree(folder)
    if as_json:
        print_json(reports.document(outcome, files if kept else files.with_paths(store, db)))
    else:
        reports.show(outcome, files if kept else files.with_paths(store, db))
    raise typer.Exit(0 if outcome.ok else 1)


@command(app, "research", example="toolcrib demo research --keep")
def research(
    *,
    as_json: AsJson = False,
    model: Model = None,
    base_url: BaseUrl = None,
    keep: Keep = False,
    task: Task = None,
    store: Journal = None,
) -> None:
    """Find something out on a small web, and check the answer.

    The exit status is 0 if the answer is right, and comes from pages that were read.
    """
    from toolcrib.interfaces.cli.demo.demo import make_importable, require

    make_importable()
    require("research", "pypdf", "selectolax")
    from examples.models import check_model
    from examples.research import demo as research_demo
    from toolcrib.interfaces.cli.demo import reports
    from toolcrib.interfaces.cli.demo.reports import announce

    store, model, base_url = _choose_settings(store, model, base_url)
    check_model(model, base_url, scripted=research_demo.SCRIPTED)
    folder = Path(tempfile.mkdtemp(prefix="toolcrib-demo-"))
    journal = store or f"sqlite:///{folder / 'toolcrib.db'}"
    if not as_json:
        scripted = "a model made of rules" if model in {None, research_demo.SCRIPTED} else None
        announce(model or research_demo.SCRIPTED, scripted=scripted, command="toolcrib demo research")
    work = research_demo.demonstrate(task or research_demo.TASK, store=journal, model=model, base_url=base_url)
    outcome = _run(work, folder)
    kept = keep or not outcome.ok
    if not kept:
        shutil.rmtree(folder)
    if as_json:
        print_json(reports.research_document(outcome, journal if kept else store))
    else:
        reports.show_research(outcome, journal if kept else store)
    raise typer.Exit(0 if outcome.ok else 1)


def _choose_settings(
    store: str | None, model: str | None, base_url: str | None
) -> tuple[str | None, str | None, str | None]:
    """Journal, model and its address as they were given or set; no journal if there is only the default."""
    from toolcrib.crib.settings import load_settings
    from toolcrib.llm.local import MODELS_FOLDER

    loaded = load_settings({"store": store, "model": model, "base_url": base_url})
    settings = loaded.settings
    if settings.models_dir is not None:
        os.environ[MODELS_FOLDER] = str(settings.models_dir)  # where the demonstration's own crib looks for them
    named = settings.store if loaded.origins["store"] != "default" else None
    return named, settings.model, settings.base_url


def _run(work: Coroutine[Any, Any, T], folder: Path) -> T:
    """Whatever fails from here on is a failure, and not the fault of the caller."""
    from toolcrib.contracts import ToolcribError, Unavailable

    try:
        return asyncio.run(work)
    except ToolcribError as failure:
        raise Unavailable(f"{' '.join(str(failure).split())}; what was made until then is in {folder}") from failure
