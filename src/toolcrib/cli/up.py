"""`toolcrib up`: the server."""

from typing import Annotated

import typer

from toolcrib.cli.options import DEFAULT_STORE, Store

Host = Annotated[str, typer.Option(help="Address to listen on.")]
Port = Annotated[int, typer.Option(help="Port to listen on.", min=0, max=65535)]


def up(host: Host = "127.0.0.1", port: Port = 8700, store: Store = DEFAULT_STORE) -> None:
    """Serve the REST interface and carry on the runs of the store, until interrupted."""
    from toolcrib.contracts import InvalidSettings

    try:
        from toolcrib.server import serve
    except ModuleNotFoundError as missing:
        msg = f"the server needs {missing.name!r}, which is not installed: pip install 'toolcrib[server]'"
        raise InvalidSettings(msg) from missing
    serve(store, host, port)
