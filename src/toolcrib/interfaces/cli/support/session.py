"""Opens a crib for one command. Options that are not given come from the settings."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

DEFAULT_STORE: Final = None
"""The store of the settings."""

Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        help="Where definitions and runs are kept, instead of TOOLCRIB_STORE.",
        metavar="URL",
        show_default=False,
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="A real model, as provider:model, instead of TOOLCRIB_MODEL.",
        metavar="REF",
        show_default=False,
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        help="Address of the model's server, if it is not the provider's own, instead of TOOLCRIB_BASE_URL.",
        metavar="URL",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
AcceptChanges = Annotated[
    bool,
    typer.Option("--accept-changes", help="Also import changes that may break callers, without a review."),
]
RunId = Annotated[str, typer.Argument(metavar="ID", help="The run's id.", show_default=False)]
Position = Annotated[
    str, typer.Argument(metavar="POSITION", help="Position of the call that waits, as the trace shows it.")
]
Folder = Annotated[
    Path | None,
    typer.Option("--write", metavar="FOLDER", file_okay=False, help="Write one file per contract into the folder."),
]


if TYPE_CHECKING:
    from toolcrib.crib import Crib

T = TypeVar("T")


def with_crib(store: str | None, work: Callable[["Crib"], Awaitable[T]], *, new: bool = False) -> T:
    """Open a crib, do the work, close it.

    Args:
        store: URL of the store; the settings' if null.
        work: What is to be done.
        new: Whether the store may be made; a command that only looks makes none.

    Raises:
        InvalidSettings: A setting cannot be used.
        NotFound: There is no such store.
        ToolcribError: As the work raises.
    """
    from toolcrib.crib import Crib
    from toolcrib.crib.settings import load_settings

    settings = load_settings({"store": store}).settings
    if not new:
        _require(settings.store)

    async def session() -> T:
        async with Crib.from_settings(settings) as crib:
            return await work(crib)

    return asyncio.run(session())


def _require(store: str) -> None:
    from toolcrib.contracts import NotFound

    file = Path(store.removeprefix("sqlite:///"))
    if store.startswith("sqlite:///") and not file.exists():
        msg = f"there is no store at {store} (in {Path.cwd()}); name one with --store or TOOLCRIB_STORE"
        raise NotFound(msg)


if TYPE_CHECKING:
    from toolcrib.crib import Crib
