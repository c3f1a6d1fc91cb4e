"""`toolcrib restate`: what a Restate server has to be told."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="What a Restate server has to be told.", no_args_is_help=True)

Data = Annotated[
    Path, typer.Option("--data", metavar="FOLDER", file_okay=False, help="Where the server is to keep its data.")
]


@app.command("config")
def config(data: Data = Path("restate-data")) -> None:
    """Print a restate.toml that suits Toolcrib: loopback only, no telemetry, and limits that workers can keep."""
    from toolcrib.core.engines.restate.options import server_config
    from toolcrib.crib.settings import load_settings

    print(server_config(load_settings().settings.restate, data.absolute()), end="")
