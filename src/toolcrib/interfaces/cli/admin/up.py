"""`toolcrib up`: the server."""

from typing import Annotated

import typer

from toolcrib.interfaces.cli.support.options import DEFAULT_STORE, Store

Host = Annotated[
    str | None, typer.Option(help="Address to listen on, instead of TOOLCRIB_SERVER_HOST.", show_default=False)
]
Port = Annotated[
    int | None,
    typer.Option(help="Port to listen on, instead of TOOLCRIB_SERVER_PORT.", min=0, max=65535, show_default=False),
]


def up(host: Host = None, port: Port = None, store: Store = DEFAULT_STORE) -> None:
    """Serve the REST interface and carry on the runs of the store, until interrupted."""
    from toolcrib.contracts import InvalidSettings
    from toolcrib.crib.settings import load_settings

    try:
        from toolcrib.interfaces.server import serve
    except ModuleNotFoundError as missing:
        msg = f"the server needs {missing.name!r}, which is not installed: pip install 'toolcrib[server]'"
        raise InvalidSettings(msg) from missing
    serve(load_settings({"store": store, "server.host": host, "server.port": port}).settings)
