"""`toolcrib fragment`: pieces of prompt that many agents share. The text comes from a file or from stdin.

`toolcrib account`: identities of their own that agents may act as.
"""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from toolcrib.interfaces.cli.support.inputs import text_of, to_contract
from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, AsJson, Store, with_crib

app = typer.Typer(help="Manage prompt fragments that agents share.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="As agents name it.", show_default=False)]
File = Annotated[Path | None, typer.Argument(metavar="FILE", help="The text; stdin if it is not given.")]
Description = Annotated[str, typer.Option("--description", help="What it is good for.")]


@app.command("set")
def set_fragment(name: Name, file: File = None, description: Description = "", store: Store = DEFAULT_STORE) -> None:
    """Set a fragment; every run that begins from now on has it."""
    from toolcrib.contracts import PromptFragment

    text = text_of(file) if file is not None else sys.stdin.read()
    content = {"name": name, "description": description, "text": text.rstrip("\n")}
    fragment = to_contract(PromptFragment, content, f"fragment {name!r}")
    with_crib(store, lambda crib: crib.fragments.save(fragment), new=True)
    print(f"fragment {name} has {len(fragment.text)} characters")


@app.command("list")
def list_fragments(store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List the fragments."""
    found = with_crib(store, lambda crib: crib.fragments.list())
    if as_json:
        print(json.dumps([fragment.model_dump(mode="json") for fragment in found], indent=2))
        return
    from toolcrib.interfaces.cli.render.tables import print_rows

    rows = [(each.name, str(len(each.text)), each.description) for each in found]
    print_rows(("Name", "Characters", "Description"), rows)


@app.command("show")
def show(name: Name, store: Store = DEFAULT_STORE) -> None:
    """Print a fragment's text."""
    print(with_crib(store, lambda crib: crib.fragments.get(name)).text)


@app.command("remove")
def remove(name: Name, store: Store = DEFAULT_STORE) -> None:
    """Remove a fragment."""
    with_crib(store, lambda crib: crib.fragments.remove(name))
    print(f"fragment {name} is removed")


accounts_app = typer.Typer(help="Manage service accounts that agents may act as.", no_args_is_help=True)

Grants = Annotated[list[str], typer.Option("--grant", help="A pattern of security URIs: ai://tools/crm/*.")]
AccountDescription = Annotated[str, typer.Option("--description", help="What it is for.")]


@accounts_app.command("set")
def set_account(
    name: Name,
    grant: Grants,
    description: AccountDescription = "",
    disabled: bool = False,
    store: Store = DEFAULT_STORE,
) -> None:
    """Set an account with its grants; also for runs that have begun."""
    from toolcrib.contracts import ServiceAccount

    content = {"name": name, "description": description, "grants": grant, "enabled": not disabled}
    account = to_contract(ServiceAccount, content, f"account {name!r}")
    with_crib(store, lambda crib: crib.accounts.save(account), new=True)
    print(f"account {name} may {'do nothing, as it is disabled' if disabled else 'use ' + ', '.join(grant)}")


@accounts_app.command("list")
def list_accounts(store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List the accounts."""
    found = with_crib(store, lambda crib: crib.accounts.list())
    if as_json:
        print(json.dumps([account.model_dump(mode="json") for account in found], indent=2))
        return
    from toolcrib.interfaces.cli.render.tables import print_rows

    rows = [(each.name, "yes" if each.enabled else "no", ", ".join(each.grants), each.description) for each in found]
    print_rows(("Name", "Enabled", "Grants", "Description"), rows)


@accounts_app.command("remove")
def remove_account(name: Name, store: Store = DEFAULT_STORE) -> None:
    """Remove an account."""
    with_crib(store, lambda crib: crib.accounts.remove(name))
    print(f"account {name} is removed")
