"""`toolcrib secret`: secrets in the vault. A value comes from stdin or a prompt, never from the command line."""

import json
import sys
from typing import Annotated, Literal

import typer

from toolcrib.interfaces.cli.support.options import DEFAULT_STORE, AsJson, Store
from toolcrib.interfaces.cli.support.session_part import with_crib

app = typer.Typer(help="Keep secrets that definitions use as ${secret:NAME}.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="As in ${secret:NAME}.", show_default=False)]
Scope = Annotated[Literal["user", "realm", "org"], typer.Option("--scope", help="Whose it is.")]
KeyName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the key: k2 after k1.")]


@app.command("set")
def set_secret(name: Name, scope: Scope = "realm", store: Store = DEFAULT_STORE) -> None:
    """Set a secret to what comes on stdin, up to its last line break; at a terminal it is asked for."""
    value = typer.prompt("Value", hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.read()
    text = value.removesuffix("\n").removesuffix("\r")
    entry = with_crib(store, lambda crib: crib.secrets.set(name, text, scope=scope), new=True)
    print(f"secret {name} of scope {scope} has version {entry.version}")


@app.command("list")
def list_secrets(store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List the secrets, without values."""
    found = with_crib(store, lambda crib: crib.secrets.list())
    if as_json:
        print(json.dumps([entry.model_dump(mode="json") for entry in found], indent=2))
        return
    from toolcrib.interfaces.cli.render.tables import print_rows

    rows = [
        (each.name, each.scope, str(each.version), each.made_by, f"{each.created_at:%Y-%m-%d %H:%M:%S}")
        for each in found
    ]
    print_rows(("Name", "Scope", "Version", "By", "At (UTC)"), rows)


@app.command("remove")
def remove(name: Name, scope: Scope = "realm", store: Store = DEFAULT_STORE) -> None:
    """Remove a secret."""
    with_crib(store, lambda crib: crib.secrets.remove(name, scope=scope))
    print(f"secret {name} of scope {scope} is removed")


@app.command("rotate")
def rotate(store: Store = DEFAULT_STORE) -> None:
    """Seal all secrets and connections under the first key of TOOLCRIB_MASTER_KEYS."""
    count = with_crib(store, lambda crib: crib.secrets.rotate())
    print(f"{count} sealed anew; the other master keys are not needed any more")


@app.command("new-key")
def new_key(name: KeyName = "k1") -> None:
    """Print an entry for TOOLCRIB_MASTER_KEYS with a random key, which is kept nowhere."""
    from toolcrib.infrastructure.secrets import new_master_key

    print(new_master_key(name))
