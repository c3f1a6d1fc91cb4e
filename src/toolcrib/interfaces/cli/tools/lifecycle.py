"""`toolcrib tool deprecate`, `block`, `access`, `impact`, `review` and others: the life of tools."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.render.tables import print_impact, print_review
from toolcrib.interfaces.cli.support.commands import shows
from toolcrib.interfaces.cli.support.session import tool_names

if TYPE_CHECKING:
    from toolcrib.contracts import ImpactReport, ToolReview, ToolRevision
    from toolcrib.contracts.providers.tool_access import ToolAccess
    from toolcrib.crib import Crib

Ref = Annotated[
    str,
    typer.Argument(
        metavar="NAME[@VERSION]", help="The tool, as calls name it.", show_default=False, autocompletion=tool_names
    ),
]
Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="The tool's name.", show_default=False, autocompletion=tool_names),
]
Message = Annotated[str | None, typer.Option("--message", metavar="TEXT", help="Why.", show_default=False)]
Sunset = Annotated[
    datetime | None,
    typer.Option("--sunset", formats=["%Y-%m-%d"], help="Not to be used from this date on (UTC).", show_default=False),
]
Replacement = Annotated[
    str | None, typer.Option("--replacement", metavar="NAME", help="What to use instead.", show_default=False)
]


def _print_change(saved: "ToolRevision") -> None:
    from toolcrib.core.registry import notice_of

    notice = notice_of(saved, datetime.now(UTC))
    print(notice or f"tool {saved.ref!r} is active, in revision {saved.revision}")
    for warning in saved.warnings:
        print(f"Warning: {warning}")


@shows(_print_change)
async def deprecate(
    crib: "Crib", ref: Ref, *, message: Message = None, sunset: Sunset = None, replacement: Replacement = None
) -> "ToolRevision":
    """Mark a tool as deprecated: callers are warned.

    It still runs, even after its sunset date.
    """
    day = sunset.replace(tzinfo=UTC) if sunset is not None else None
    return await crib.lifecycle.deprecate(ref, message=message, sunset=day, replacement=replacement)


@shows(_print_change)
async def block(crib: "Crib", ref: Ref, *, message: Message = None, replacement: Replacement = None) -> "ToolRevision":
    """Deny every call of a tool, in active runs too."""
    return await crib.lifecycle.block(ref, message=message, replacement=replacement)


@shows(_print_change)
async def activate(crib: "Crib", ref: Ref) -> "ToolRevision":
    """Reactivate a deprecated or blocked tool."""
    return await crib.lifecycle.activate(ref)


@shows(_print_change)
async def accept(crib: "Crib", name: Name) -> "ToolRevision":
    """Accept the changes that wait for review."""
    return await crib.lifecycle.accept(name)


@shows(_print_change)
async def reject(crib: "Crib", name: Name) -> "ToolRevision":
    """Reject the changes that wait for review.

    A tool that was blocked because of them stays blocked.
    """
    return await crib.lifecycle.reject(name)


@shows(print_review)
async def review(crib: "Crib", name: Name) -> "ToolReview":
    """Show the changes of a tool that wait for review."""
    return await crib.lifecycle.review(name)


@shows(print_impact)
async def impact(crib: "Crib", ref: Ref) -> "ImpactReport":
    """List what depends on a tool, and its active runs."""
    return await crib.lifecycle.impact(ref)


def _print_access(found: "ToolAccess") -> None:
    print(f"provider: {found.provider or 'none'}, sign-in: {found.sign_in.replace('_', ' ')}")
    for use in found.secrets:
        print(f"{use.reference}: {f'from {use.found_in}' if use.found_in else use.problem}")
    print(found.problem or ("ready" if found.ready else "something is missing"))


@shows(_print_access, fails=lambda found: not found.ready)
async def access(crib: "Crib", name: Name) -> "ToolAccess":
    """Show whether a tool needs a sign-in, and its secrets.

    No value is printed. The exit status is 1 if something is missing.
    """
    [found] = await crib.connections.access(name)
    return found
