"""`toolcrib model`: the models that run on this machine, and those that definitions can name."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from toolcrib.interfaces.cli.render.console import JSON_ONLY
from toolcrib.interfaces.cli.render.progress import progress
from toolcrib.interfaces.cli.support.commands import Table, prints, shows
from toolcrib.interfaces.cli.support.groups import CommandApp, command
from toolcrib.interfaces.cli.support.inputs import confirm
from toolcrib.interfaces.cli.support.session import Yes

if TYPE_CHECKING:
    from toolcrib.contracts.specs.model_listing import ModelInfo, ModelProviderInfo
    from toolcrib.crib import Crib
    from toolcrib.interfaces.cli.render.documents import InstallableModel, Removed
    from toolcrib.llm.local import LocalModel

app = CommandApp("Install local models, and look up those of providers.")

DEFAULT_MODEL: Final = "qwen2.5-coder-1.5b"


def _model_names(incomplete: str) -> list[str]:
    from toolcrib.llm import local

    return [name for name in local.MODELS if name.startswith(incomplete)]


Name = Annotated[str, typer.Argument(metavar="NAME", help="The model's name.", autocompletion=_model_names)]


def _print_added(found: "InstallableModel") -> None:
    print(f"Installed and verified: {found.path}\nUse it as --model local:{found.name}")


@command(app, "add", example="toolcrib model add qwen2.5-coder-1.5b --yes")
@prints(_print_added)
def add(name: Name = DEFAULT_MODEL, yes: Yes = False) -> "InstallableModel":
    """Download and verify a model.

    It comes through this environment's package installer. What it is and where it comes from is printed first.
    """
    from toolcrib.llm import local

    wanted, folder = local.find_model(name), _folder()
    if wanted in local.list_installed(folder):
        return _entry(wanted, folder)
    if not JSON_ONLY.get():
        _describe(_entry(wanted, folder))
    confirm("Download it?", yes=yes)
    with progress(f"Downloading {name}", total=len(wanted.pieces), every=1) as done:
        local.install(wanted, folder, progress=lambda there, of: done(there))
    return _entry(wanted, folder)


_MODELS: "Table[InstallableModel]" = Table(
    {
        "Name": lambda each: f"local:{each.name}",
        "Size": lambda each: f"{each.size_bytes // 2**20} MiB",
        "Installed": lambda each: each.installed,
        "Model": lambda each: each.title,
    }
)


@command(app, "list", example="toolcrib model list")
@prints(_MODELS)
def list_models() -> "Sequence[InstallableModel]":
    """List the models that can be installed."""
    from toolcrib.llm import local

    folder = _folder()
    return [_entry(known, folder) for known in local.MODELS.values()]


def _describe(found: "InstallableModel") -> None:
    print(f"Model:     {found.title}")
    print(f"Licence:   {found.licence}")
    print(f"Size:      {found.size_bytes // 2**20} MiB, in {len(found.packages)} packages")
    print(f"           {found.packages[0]} to {found.packages[-1]}")
    print(f"Source:    {found.provenance}")
    print(f"SHA-256:   {found.sha256}, and one for every package")
    print(f"File:      {found.path}")
    print(f"Installed: {'yes' if found.installed else 'no'}")


@command(app, "show", example="toolcrib model show qwen2.5-coder-1.5b")
@prints(_describe)
def show(name: Name = DEFAULT_MODEL) -> "InstallableModel":
    """Show a model: its licence, size, source and file."""
    from toolcrib.llm import local

    return _entry(local.find_model(name), _folder())


@command(app, "remove", example="toolcrib model remove qwen2.5-coder-1.5b")
@prints("model {found.name} is removed")
def remove(name: Name = DEFAULT_MODEL) -> "Removed":
    """Delete the file of a model."""
    from toolcrib.interfaces.cli.render.documents import Removed
    from toolcrib.llm import local

    local.remove(local.find_model(name), _folder())
    return Removed(kind="model", name=name)


_PROVIDERS: "Table[ModelProviderInfo]" = Table(
    {
        "Name": lambda each: each.name,
        "Wire": lambda each: each.wire,
        "Key": lambda each: each.key_env and f"{each.key_env}{'' if each.key_set else ' (not set)'}",
        "Usable": lambda each: each.usable or each.why_not,
    }
)


@command(app, "providers", example="toolcrib model providers")
@shows(_PROVIDERS)
async def list_providers(crib: "Crib") -> "Sequence[ModelProviderInfo]":
    """List the providers of models, and what they lack.

    It tells whether their keys are set. Nothing is sent to them.
    """
    return await crib.model_catalog.providers()


Text = Annotated[str, typer.Argument(metavar="TEXT", help="Text in the model's reference, provider:model.")]
Limit = Annotated[int, typer.Option("--limit", min=1, help="At most so many.")]
_FOUND: "Table[ModelInfo]" = Table(
    {
        "Model": lambda each: each.reference,
        "Context": lambda each: each.context_window,
        "USD/M in": lambda each: each.prices and f"{each.prices.input_usd:f}",
        "USD/M out": lambda each: each.prices and f"{each.prices.output_usd:f}",
        "Usable": lambda each: each.usable,
    }
)


@command(app, "find", example="toolcrib model find claude-sonnet")
@shows(_FOUND)
async def find(crib: "Crib", text: Text, limit: Limit = 50) -> "Sequence[ModelInfo]":
    """Find models of providers, with prices.

    Prices are in US dollars for a million tokens.
    """
    return (await crib.model_catalog.page(text=text, limit=limit)).items


def _folder() -> Path:
    """Where models are kept, as the settings say."""
    from toolcrib.crib.settings import load_settings
    from toolcrib.llm import local

    return load_settings().settings.models_dir or local.models_folder()


def _entry(wanted: "LocalModel", folder: Path) -> "InstallableModel":
    from toolcrib.interfaces.cli.render.documents import InstallableModel
    from toolcrib.llm import local

    return InstallableModel(
        name=wanted.name,
        title=wanted.title,
        licence=wanted.licence,
        size_bytes=wanted.size_bytes,
        sha256=wanted.sha256,
        provenance=wanted.provenance,
        installed=wanted in local.list_installed(folder),
        path=str(local.model_path(wanted, folder)),
        packages=tuple(piece.package for piece in wanted.pieces),
    )
