"""`toolcrib fragment`: prompt fragments, read from a file or stdin. `toolcrib account`: service accounts."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.support.commands import ItemFormat, Resource, Table
from toolcrib.interfaces.cli.support.inputs import text_of, to_contract
from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, Store, with_crib

if TYPE_CHECKING:
    from toolcrib.contracts import PromptFragment, ServiceAccount

app = typer.Typer(help="Manage prompt fragments that agents share.", no_args_is_help=True)
accounts_app = typer.Typer(help="Manage service accounts that agents may act as.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="As agents name it.", show_default=False)]
File = Annotated[Path | None, typer.Argument(metavar="FILE", help="The text; stdin if it is not given.")]
Description = Annotated[str, typer.Option("--description", help="What it is good for.")]
Grants = Annotated[list[str], typer.Option("--grant", help="A pattern of security URIs: ai://tools/crm/*.")]
AccountDescription = Annotated[str, typer.Option("--description", help="What it is for.")]


@app.command("set")
def set_fragment(name: Name, file: File = None, description: Description = "", store: Store = DEFAULT_STORE) -> None:
    """Set a fragment; every run that begins from now on has it."""
    from toolcrib.contracts import PromptFragment

    text = text_of(file) if file is not None else sys.stdin.read()
    content = {"name": name, "description": description, "text": text.rstrip("\n")}
    fragment = to_contract(PromptFragment, content, f"fragment {name!r}")
    with_crib(store, lambda crib: crib.fragments.save(fragment), new=True)
    print(f"fragment {name} has {len(fragment.text)} characters")


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


FRAGMENTS: "Resource[PromptFragment]" = Resource(
    noun="fragment",
    name=Name,
    list=lambda crib: crib.fragments.list(),
    table=Table(
        {
            "Name": lambda each: each.name,
            "Characters": lambda each: len(each.text),
            "Description": lambda each: each.description,
        }
    ),
    get=lambda crib, name: crib.fragments.get(name),
    one=ItemFormat(text=lambda found: print(found.text)),
    remove=lambda crib, name: crib.fragments.remove(name),
    help={"show": "Print a fragment's text."},
)
FRAGMENTS.add_to(app)

ACCOUNTS: "Resource[ServiceAccount]" = Resource(
    noun="account",
    name=Name,
    list=lambda crib: crib.accounts.list(),
    table=Table(
        {
            "Name": lambda each: each.name,
            "Enabled": lambda each: each.enabled,
            "Grants": lambda each: ", ".join(each.grants),
            "Description": lambda each: each.description,
        }
    ),
    remove=lambda crib, name: crib.accounts.remove(name),
)
ACCOUNTS.add_to(accounts_app)
