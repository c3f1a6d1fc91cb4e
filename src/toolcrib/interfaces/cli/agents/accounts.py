"""`toolcrib account`: identities of their own that agents may act as."""

import json
from typing import Annotated

import typer

from toolcrib.interfaces.cli.support.inputs import validated
from toolcrib.interfaces.cli.support.options import DEFAULT_STORE, AsJson, Store
from toolcrib.interfaces.cli.support.session_part import with_crib

app = typer.Typer(help="Keep service accounts that agents may act as.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="As agents name it.", show_default=False)]
Grants = Annotated[list[str], typer.Option("--grant", help="A pattern of security URIs: ai://tools/crm/*.")]
Description = Annotated[str, typer.Option("--description", help="What it is for.")]


@app.command("set")
def set_account(
    name: Name, grant: Grants, description: Description = "", disabled: bool = False, store: Store = DEFAULT_STORE
) -> None:
    """Set an account with its grants; also for runs that have begun."""
    from toolcrib.contracts import ServiceAccount

    content = {"name": name, "description": description, "grants": grant, "enabled": not disabled}
    account = validated(ServiceAccount, content, f"account {name!r}")
    with_crib(store, lambda crib: crib.accounts.save(account), new=True)
    print(f"account {name} may {'do nothing, as it is disabled' if disabled else 'use ' + ', '.join(grant)}")


@app.command("list")
def list_accounts(store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List the accounts."""
    found = with_crib(store, lambda crib: crib.accounts.list())
    if as_json:
        print(json.dumps([account.model_dump(mode="json") for account in found], indent=2))
        return
    from toolcrib.interfaces.cli.render.tables import print_rows

    rows = [(each.name, "yes" if each.enabled else "no", ", ".join(each.grants), each.description) for each in found]
    print_rows(("Name", "Enabled", "Grants", "Description"), rows)


@app.command("remove")
def remove(name: Name, store: Store = DEFAULT_STORE) -> None:
    """Remove an account."""
    with_crib(store, lambda crib: crib.accounts.remove(name))
    print(f"account {name} is removed")
