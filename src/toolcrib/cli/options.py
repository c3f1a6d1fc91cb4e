"""Options that several commands share, with the environment variables that set them."""

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_STORE = "sqlite:///toolcrib.db"

Store = Annotated[
    str,
    typer.Option("--store", envvar="TOOLCRIB_STORE", help="Where definitions and runs are kept.", metavar="URL"),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model", envvar="TOOLCRIB_MODEL", help="A real model, as provider:model.", metavar="REF", show_default=False
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        envvar="TOOLCRIB_BASE_URL",
        help="Address of the model's server, if it is not the provider's own.",
        metavar="URL",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
RunId = Annotated[str, typer.Argument(metavar="ID", help="The run's id.", show_default=False)]
Position = Annotated[
    str, typer.Argument(metavar="POSITION", help="Position of the call that waits, as the trace shows it.")
]
Folder = Annotated[
    Path | None,
    typer.Option("--write", metavar="FOLDER", file_okay=False, help="Write one file per contract into the folder."),
]
