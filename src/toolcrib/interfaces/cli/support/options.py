"""Options that several commands share. One that is not given is what the settings say."""

from pathlib import Path
from typing import Annotated, Final

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
    typer.Option("--accept-changes", help="Take over also changes that could harm callers, without a look at them."),
]
RunId = Annotated[str, typer.Argument(metavar="ID", help="The run's id.", show_default=False)]
Position = Annotated[
    str, typer.Argument(metavar="POSITION", help="Position of the call that waits, as the trace shows it.")
]
Folder = Annotated[
    Path | None,
    typer.Option("--write", metavar="FOLDER", file_okay=False, help="Write one file per contract into the folder."),
]
