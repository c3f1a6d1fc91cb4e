"""`toolcrib tool deprecate`, `block`, `activate`, `impact`, `review`, `accept`, `reject`: the life of tools."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, AsJson, Store, with_crib

if TYPE_CHECKING:
    from toolcrib.contracts import ImpactReport, ToolReview, ToolRevision
    from toolcrib.crib import Crib

Ref = Annotated[str, typer.Argument(metavar="NAME[@VERSION]", help="The tool, as calls name it.", show_default=False)]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The tool's name.", show_default=False)]
Message = Annotated[str | None, typer.Option("--message", metavar="TEXT", help="Why.", show_default=False)]
Sunset = Annotated[
    datetime | None,
    typer.Option("--sunset", formats=["%Y-%m-%d"], help="Not to be used from this date on (UTC).", show_default=False),
]
Replacement = Annotated[
    str | None, typer.Option("--replacement", metavar="NAME", help="What to use instead.", show_default=False)
]


def deprecate(
    ref: Ref,
    *,
    message: Message = None,
    sunset: Sunset = None,
    replacement: Replacement = None,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Mark a tool as deprecated: callers are warned, and it still runs, even after its sunset date."""
    day = sunset.replace(tzinfo=UTC) if sunset is not None else None
    _change(
        store,
        lambda crib: crib.lifecycle.deprecate(ref, message=message, sunset=day, replacement=replacement),
        as_json=as_json,
    )


def block(
    ref: Ref,
    *,
    message: Message = None,
    replacement: Replacement = None,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Deny every call of a tool, in active runs too."""
    _change(store, lambda crib: crib.lifecycle.block(ref, message=message, replacement=replacement), as_json=as_json)


def activate(ref: Ref, store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Reactivate a deprecated or blocked tool."""
    _change(store, lambda crib: crib.lifecycle.activate(ref), as_json=as_json)


def accept(name: Name, store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Accept the changes that wait for review."""
    _change(store, lambda crib: crib.lifecycle.accept(name), as_json=as_json)


def reject(name: Name, store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Reject the changes that wait for review; a tool that was blocked because of them stays blocked."""
    _change(store, lambda crib: crib.lifecycle.reject(name), as_json=as_json)


def review(name: Name, store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Show the changes that wait for review, with every difference."""

    async def read(crib: "Crib") -> "ToolReview":
        return await crib.lifecycle.review(name)

    found = with_crib(store, read)
    if as_json:
        print(found.model_dump_json(indent=2))
        return
    from toolcrib.interfaces.cli.render.tables import print_review

    print_review(found)


def impact(ref: Ref, store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List everything bound to a tool, and the active runs that have pinned it."""

    async def read(crib: "Crib") -> "ImpactReport":
        return await crib.lifecycle.impact(ref)

    found = with_crib(store, read)
    if as_json:
        print(found.model_dump_json(indent=2))
        return
    from toolcrib.interfaces.cli.render.tables import print_impact

    print_impact(found)


def _change(store: str | None, change: "Callable[[Crib], Awaitable[ToolRevision]]", *, as_json: bool) -> None:
    saved = with_crib(store, change)
    if as_json:
        print(saved.model_dump_json(indent=2))
        return
    from toolcrib.core.registry import notice_of

    notice = notice_of(saved, datetime.now(UTC))
    print(notice or f"tool {saved.ref!r} is active, in revision {saved.revision}")
    for warning in saved.warnings:
        print(f"Warning: {warning}")
