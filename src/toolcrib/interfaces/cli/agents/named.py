"""What is kept by name: prompt fragments, service accounts, conditions and step handlers of workflows."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolcrib.interfaces.cli.support.commands import HelpTexts, ItemFormat, Resource, Table, prints
from toolcrib.interfaces.cli.support.groups import CommandApp, command
from toolcrib.interfaces.cli.support.inputs import text_of, to_contract
from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, NamedKind, Store, names_of, with_crib

if TYPE_CHECKING:
    from toolcrib.contracts import JsonObject, PromptFragment, ServiceAccount
    from toolcrib.contracts.workflows import ConditionBinding, StepRegistration
    from toolcrib.crib import Crib

app = CommandApp("Manage prompt fragments that agents share.")
accounts_app = CommandApp("Manage service accounts that agents may act as.")
conditions_app = CommandApp("Manage named conditions that workflows use.")
handlers_app = CommandApp("Manage handlers of workflow steps: names that mean tools.")


def _name(kind: NamedKind, said: str) -> Any:
    """The argument that names one of a kind."""
    info = typer.Argument(metavar="NAME", help=said, show_default=False, autocompletion=names_of(kind))
    return Annotated[str, info]


Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="As agents name it.", show_default=False, autocompletion=names_of("fragment")),
]
AccountName = Annotated[
    str,
    typer.Argument(metavar="NAME", help="As agents name it.", show_default=False, autocompletion=names_of("account")),
]
File = Annotated[Path, typer.Argument(metavar="FILE", help="The text; stdin if it is not given.", show_default=False)]
Description = Annotated[str, typer.Option("--description", help="What it is good for.")]
Grants = Annotated[list[str], typer.Option("--grant", help="A pattern of security URIs: ai://tools/crm/*.")]
AccountDescription = Annotated[str, typer.Option("--description", help="What it is for.")]
Disabled = Annotated[bool, typer.Option("--disabled", help="Refuse its use until it is set again without this.")]


def _print_fragment(found: "PromptFragment") -> None:
    print(f"fragment {found.name} has {len(found.text)} characters")


@command(app, "set", example='toolcrib fragment set tone tone.md --description "How we write"')
@prints(_print_fragment)
def set_fragment(
    name: Name, file: File = Path("-"), description: Description = "", store: Store = DEFAULT_STORE
) -> "PromptFragment":
    """Set the text of a fragment, from a file or stdin.

    Every run that begins from now on has it.
    """
    from toolcrib.contracts import PromptFragment

    content = {"name": name, "description": description, "text": text_of(file).rstrip("\n")}
    fragment = to_contract(PromptFragment, content, f"fragment {name!r}")
    with_crib(store, lambda crib: crib.fragments.save(fragment), new=True)
    return fragment


def _print_account(found: "ServiceAccount") -> None:
    may = f"use {', '.join(found.grants)}" if found.enabled else "do nothing, as it is disabled"
    print(f"account {found.name} may {may}")


@command(accounts_app, "set", example="toolcrib account set billing --grant 'ai://tools/crm/*'")
@prints(_print_account)
def set_account(
    name: AccountName,
    grant: Grants,
    description: AccountDescription = "",
    disabled: Disabled = False,
    store: Store = DEFAULT_STORE,
) -> "ServiceAccount":
    """Set an account with its grants.

    They count at once, for active runs too.
    """
    from toolcrib.contracts import ServiceAccount

    content = {"name": name, "description": description, "grants": grant, "enabled": not disabled}
    account = to_contract(ServiceAccount, content, f"account {name!r}")
    with_crib(store, lambda crib: crib.accounts.save(account), new=True)
    return account


async def _add_condition(crib: "Crib", content: "JsonObject") -> "ConditionBinding":
    from toolcrib.contracts.workflows import ConditionBinding

    condition = to_contract(ConditionBinding, _without_kind(content), f"condition {content.get('name')!r}")
    await crib.conditions.save(condition)
    return condition


async def _add_handler(crib: "Crib", content: "JsonObject") -> "StepRegistration":
    from toolcrib.contracts.workflows import StepRegistration

    handler = to_contract(StepRegistration, _without_kind(content), f"handler {content.get('name')!r}")
    await crib.steps.save(handler)
    return handler


def _without_kind(content: "JsonObject") -> "JsonObject":
    """The fields of a document, which may be one of a project."""
    return {name: value for name, value in content.items() if name != "kind"}


FRAGMENTS: "Resource[PromptFragment]" = Resource(
    noun="fragment",
    name=Name,
    list=lambda crib: crib.fragments.list(),
    get=lambda crib, name: crib.fragments.get(name),
    remove=lambda crib, name: crib.fragments.remove(name),
    shown=ItemFormat(
        queried="fragments",
        table=Table(
            {
                "Name": lambda each: each.name,
                "Characters": lambda each: len(each.text),
                "Description": lambda each: each.description,
            }
        ),
        text=lambda found: print(found.text),
    ),
    help=HelpTexts({"show": "Print the text of a fragment."}, {"show": " tone", "remove": " tone"}),
)
FRAGMENTS.add_to(app)

ACCOUNTS: "Resource[ServiceAccount]" = Resource(
    noun="account",
    name=AccountName,
    list=lambda crib: crib.accounts.list(),
    get=lambda crib, name: crib.accounts.get(name),
    remove=lambda crib, name: crib.accounts.remove(name),
    shown=ItemFormat(
        queried="accounts",
        table=Table(
            {
                "Name": lambda each: each.name,
                "Enabled": lambda each: each.enabled,
                "Grants": lambda each: ", ".join(each.grants),
                "Description": lambda each: each.description,
            }
        ),
    ),
    help=HelpTexts({}, {"show": " billing", "remove": " billing"}),
)
ACCOUNTS.add_to(accounts_app)

CONDITIONS: "Resource[ConditionBinding]" = Resource(
    noun="condition",
    name=_name("condition", "As workflows name it."),
    list=lambda crib: crib.conditions.list(),
    get=lambda crib, name: crib.conditions.get(name),
    add=_add_condition,
    remove=lambda crib, name: crib.conditions.remove(name),
    shown=ItemFormat(
        queried="conditions",
        table=Table(
            {
                "Name": lambda each: each.name,
                "Parameters": lambda each: ", ".join(each.parameters),
                "Expression": lambda each: each.expression,
            }
        ),
    ),
    help=HelpTexts({}, {"show": " is_won", "add": " is-won.yaml", "remove": " is_won"}),
)
CONDITIONS.add_to(conditions_app)

HANDLERS: "Resource[StepRegistration]" = Resource(
    noun="handler",
    name=_name("handler", "As the steps of workflows name it."),
    list=lambda crib: crib.steps.list(),
    get=lambda crib, name: crib.steps.get(name),
    add=_add_handler,
    remove=lambda crib, name: crib.steps.remove(name),
    shown=ItemFormat(queried="steps", table=Table({"Name": lambda each: each.name, "Tool": lambda each: each.tool})),
    help=HelpTexts({}, {"show": " deals.find", "add": " find.yaml", "remove": " deals.find"}),
)
HANDLERS.add_to(handlers_app)
