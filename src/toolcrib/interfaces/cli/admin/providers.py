"""`toolcrib provider`: define, test, connect and sync providers. `toolcrib reference`: reference data.

A connection that a person grants in a browser is completed by a redirect to a local page on 127.0.0.1 (RFC 8252,
section 7.3).
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

from toolcrib.interfaces.cli.render.console import JSON_ONLY
from toolcrib.interfaces.cli.render.progress import progress
from toolcrib.interfaces.cli.render.tables import import_document, print_outcome, print_readings, print_references
from toolcrib.interfaces.cli.support.commands import HelpTexts, ItemFormat, Resource, Table, prints, shows
from toolcrib.interfaces.cli.support.groups import CommandApp, command
from toolcrib.interfaces.cli.support.inputs import confirm, object_in, time_of
from toolcrib.interfaces.cli.support.session import (
    DEFAULT_STORE,
    AcceptChanges,
    DefinitionFile,
    Store,
    Yes,
    names_of,
    with_crib,
)

PATH: Final = "/callback"
_MAX_HEAD: Final = 16_384
_PAGE: Final = "<!doctype html><title>Toolcrib</title><p>{text}</p>"


@dataclass(frozen=True)
class Landing:
    """Where browsers are sent back to, while it is open."""

    redirect_uri: str
    arrival: Callable[[str], Awaitable[str]]
    """Waits for the redirect that carries a state, and returns its URL; other visitors are turned away."""


@asynccontextmanager
async def landing(port: int = 0) -> AsyncGenerator[Landing]:
    """Open the page, on any free port if none is named.

    Raises:
        OSError: The port is taken.
    """
    arrived: asyncio.Queue[tuple[str, asyncio.Future[bool]]] = asyncio.Queue()

    async def visit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            method, _, rest = head.decode("latin-1").partition(" ")
            target = rest.partition(" ")[0]
            welcome: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            known = False
            if method == "GET" and target.partition("?")[0] == PATH:
                arrived.put_nowait((target, welcome))
                known = await welcome
            writer.write(_answer(known=known))
            await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass  # a visitor who is no browser
        finally:
            writer.close()

    server = await asyncio.start_server(visit, "127.0.0.1", port, limit=_MAX_HEAD)
    origin = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def arrival(state: str) -> str:
        while True:
            target, welcome = await arrived.get()
            known = f"state={state}" in target.partition("?")[2].split("&")
            welcome.set_result(known)
            if known:
                return origin + target

    async with server:
        yield Landing(origin + PATH, arrival)


def _answer(*, known: bool) -> bytes:
    text = "You can close this window; continue in the terminal." if known else "No command waits for this."
    page = _PAGE.format(text=text).encode()
    status = "200 OK" if known else "400 Bad Request"
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {len(page)}\r\nConnection: close\r\n\r\n"
    return head.encode() + page


if TYPE_CHECKING:
    from toolcrib.contracts import (
        Consent,
        Dependent,
        Discovery,
        ProviderCheck,
        ProviderDefinition,
        ProviderSync,
        ReferenceSnapshot,
        Revocation,
    )
    from toolcrib.contracts.workflows.provider_use import ProviderImpact, ProviderRemoval, ProviderUsage
    from toolcrib.core.providers import ImportedApi
    from toolcrib.crib import Crib
    from toolcrib.interfaces.cli.render.documents import ListReadings

app = CommandApp("Define, test and connect the systems that tools talk to.")

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="Name of the provider.", show_default=False, autocompletion=names_of("provider")
    ),
]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="Of the page on this machine; 0 for a free one.")]
Paste = Annotated[bool, typer.Option("--paste", help="Ask for the URL to which the browser was sent, without a page.")]
WithTools = Annotated[bool, typer.Option("--with-tools", help="Remove its tools too.")]
Days = Annotated[int, typer.Option("--days", min=1, max=3650, help="How many days back runs are counted.")]
Shared = Annotated[bool, typer.Option("--shared", help="The connection of the whole realm, not one's own.")]


@command(app, "add", example="toolcrib provider add crm.yaml")
@prints("provider {found.name} is saved")
def add(file: DefinitionFile, store: Store = DEFAULT_STORE) -> "ProviderDefinition":
    """Save a provider from a file, in place of one of its name."""
    from toolcrib.contracts import InvalidDefinition, ProviderDefinition

    content = object_in(file)
    try:
        provider = ProviderDefinition.model_validate(content)
    except ValueError as problem:
        raise InvalidDefinition(f"{file}: {_explain_problem(problem)}") from None
    with_crib(store, lambda crib: crib.save_provider(provider), new=True)
    return provider


def _print_check(found: "ProviderCheck") -> None:
    marks = {True: "yes", False: "no", None: "unknown"}
    print(f"reachable: {marks[found.reachable]}, authenticated: {marks[found.authenticated]}: {found.message}")


def _is_in_doubt(found: "ProviderCheck") -> bool:
    """Whether a provider is not known to be reached and, if it has credentials, to accept them."""
    return not found.reachable or (found.authenticated is not True and found.has_credentials)


@command(app, "test", example="toolcrib provider test crm")
@shows(_print_check, fails=_is_in_doubt)
async def try_out(crib: "Crib", name: Name) -> "ProviderCheck":
    """Test the connection and credentials of a provider.

    It sends harmless requests. The exit status is 1 unless both are good.
    """
    return await crib.connections.test(name)


def _print_discovery(found: "Discovery") -> None:
    for item in found.items:
        print(item)
    print(f"{len(found.items)} {found.kind}; {found.message}", file=sys.stderr)


@command(app, "discover", example="toolcrib provider discover crm")
@shows(_print_discovery)
async def discover(crib: "Crib", name: Name) -> "Discovery":
    """List what a provider offers for import; nothing is imported."""
    return await crib.connections.discover(name)


def _print_sync(found: "ImportedApi") -> None:
    if found.outcome is not None:
        print_outcome(found.outcome)
    print(f"{found.provider.name} offers {len(found.tools)} tools")


@command(app, "sync", example="toolcrib provider sync crm")
@shows(_print_sync, data=import_document)
async def sync(crib: "Crib", name: Name, accept: AcceptChanges = False) -> "ImportedApi":
    """Import new and changed tools of a provider again.

    Changes that may break callers wait for a review: see `toolcrib tool review`.
    """
    with progress(f"Syncing {name}"):
        return await crib.imports.sync(name, accept=accept)


Every = Annotated[
    str | None,
    typer.Option("--every", metavar="TIME", help="Time between syncs: 30m, 6h, 1d.", show_default=False),
]
Cron = Annotated[
    str | None,
    typer.Option("--cron", metavar="CRON", help="Times, in place of --every, as '0 6 * * *'.", show_default=False),
]
Zone = Annotated[str, typer.Option("--timezone", metavar="ZONE", help="Of --cron: a name of the IANA database.")]
Off = Annotated[bool, typer.Option("--off", help="Sync it no more.")]


def _print_state(found: "ProviderSync") -> None:
    print(f"next: {found.next_at or '-'}")
    counts = ", ".join(f"{count} {name}" for name, count in found.counts.items())
    print(f"last: {found.at or '-'} {found.result or ''} {f'({counts})' if counts else ''}".rstrip())
    for tool in found.held:
        print(f"waits: toolcrib tool review {tool}")
    if found.error is not None:
        print(f"problem: {found.error} (failed {found.failures} times in a row)")


@command(app, "schedule", example="toolcrib provider schedule crm --every 6h")
@shows(_print_state)
async def schedule(
    crib: "Crib", name: Name, *, every: Every = None, cron: Cron = None, timezone: Zone = "UTC", off: Off = False
) -> "ProviderSync":
    """Sync a provider regularly while a server runs.

    Changes that may break callers wait for a review: see `toolcrib tool review`.
    """
    from toolcrib.contracts import AutoDiscover, InvalidInput

    if sum((every is not None, cron is not None, off)) != 1:
        raise InvalidInput("give one of --every, --cron and --off, such as --every 6h")
    if off:
        return await crib.imports.schedule(name, None)
    times: dict[str, object] = {"cron": cron, "timezone": timezone}
    if every is not None:
        times = {"every_s": time_of(every, "--every").total_seconds()}
    try:
        planned = AutoDiscover.model_validate(times)
    except ValueError as problem:
        raise InvalidInput(f"the schedule cannot be used: {_explain_problem(problem)}") from None
    return await crib.imports.schedule(name, planned)


@command(app, "state", example="toolcrib provider state crm")
@shows(_print_state)
async def state(crib: "Crib", name: Name) -> "ProviderSync":
    """Print a provider's next sync, and how the last one ended."""
    return await crib.imports.last_sync(name)


def _print_consent(found: "Consent") -> None:
    print(f"provider {found.provider} is connected for {found.user or 'the whole realm'}")


@command(app, "connect", example="toolcrib provider connect crm")
@prints(_print_consent)
def connect(name: Name, port: Port = 0, paste: Paste = False, store: Store = DEFAULT_STORE) -> "Consent":
    """Connect to a provider in a browser.

    Open the URL that is printed on stderr, and grant what is asked for.
    """

    async def through_page(crib: "Crib") -> "Consent":
        async with landing(port) as page:
            request = await crib.connections.begin(name, redirect_uri=page.redirect_uri)
            print(f"open {request.url}", file=sys.stderr)
            seconds = (request.expires_at - crib.clock.now()).total_seconds()
            return await crib.connections.finish(await asyncio.wait_for(page.arrival(request.state), seconds))

    async def through_paste(crib: "Crib") -> "Consent":
        request = await crib.connections.begin(name, redirect_uri=f"http://127.0.0.1:{port or 8765}/callback")
        print(f"open {request.url}", file=sys.stderr)
        return await crib.connections.finish(typer.prompt("URL that the browser was sent to", err=True))

    if paste and JSON_ONLY.get():
        from toolcrib.contracts import InvalidInput

        raise InvalidInput("--paste asks for a URL, and --json never asks; leave one of them out")
    try:
        return with_crib(store, through_paste if paste else through_page)
    except TimeoutError:
        from toolcrib.contracts import Conflict

        raise Conflict("the authorization server sent no answer in time; connect again") from None


_CONNECTIONS: "Table[Consent]" = Table(
    {
        "Provider": lambda each: each.provider,
        "User": lambda each: each.user or "(all)",
        "Status": lambda each: each.status,
        "Scopes": lambda each: " ".join(each.scopes),
    }
)


@command(app, "connections", example="toolcrib provider connections")
@shows(_CONNECTIONS)
async def connections(crib: "Crib") -> "Sequence[Consent]":
    """List one's own connections and those of the realm."""
    return await crib.connections.list()


def _is_unrevoked(found: "Revocation") -> bool:
    return not found.revoked


@command(app, "disconnect", example="toolcrib provider disconnect crm")
@shows("{found.message}", fails=_is_unrevoked)
async def disconnect(crib: "Crib", name: Name, shared: Shared = False) -> "Revocation":
    """Revoke the tokens of a connection, and delete it.

    The exit status is 1 if the tokens could not be revoked.
    """
    return await crib.connections.revoke(name, shared=shared)


def _print_removal(found: "ProviderRemoval") -> None:
    print(found.message)
    for name in found.broken:
        print(f"does not work without it: {name}", file=sys.stderr)


@command(app, "remove", example="toolcrib provider remove crm --yes")
@prints(_print_removal)
def remove(
    name: Name, yes: Yes = False, with_tools: WithTools = False, store: Store = DEFAULT_STORE
) -> "ProviderRemoval":
    """Remove a provider.

    It asks first if something depends on the provider: calls of its tools are refused from then on.
    """

    async def work(crib: "Crib") -> "ProviderRemoval":
        dependents = [each.name for each in (await crib.connections.impact(name)).dependents]
        if dependents:
            shown = ", ".join(dependents[:5]) + (f" and {len(dependents) - 5} more" if len(dependents) > 5 else "")
            confirm(f"Provider {name} is in use by {shown}. Remove it?", yes=yes)
        return await crib.connections.remove(name, tools="remove" if with_tools else "keep")

    return with_crib(store, work)


_IMPACT: "Table[Dependent]" = Table(
    {
        "Kind": lambda each: each.kind,
        "Name": lambda each: each.name,
        "By": lambda each: " <- ".join(reversed(each.path[:-1])),
    }
)


def _print_impact(found: "ProviderImpact") -> None:
    _IMPACT(found.dependents)


@command(app, "impact", example="toolcrib provider impact crm")
@shows(_print_impact)
async def show_impact(crib: "Crib", name: Name) -> "ProviderImpact":
    """List tools, agents and workflows that depend on a provider."""
    return await crib.connections.impact(name)


_USAGE: "Table[ProviderUsage]" = Table(
    {
        "Provider": lambda each: each.provider,
        "Calls": lambda each: each.calls,
        "Failed": lambda each: each.failed,
        "Errors": lambda each: ", ".join(f"{code} {count}" for code, count in each.errors.items()),
        "p50 ms": lambda each: each.latency_ms and f"{each.latency_ms.p50:.0f}",
        "p95 ms": lambda each: each.latency_ms and f"{each.latency_ms.p95:.0f}",
        "Cost": lambda each: "unknown" if each.cost_usd is None else f"${each.cost_usd:f}",
        "Last used": lambda each: each.last_used_at,
    }
)


@command(app, "usage", example="toolcrib provider usage --days 7")
@shows(_USAGE)
async def show_usage(crib: "Crib", days: Days = 30) -> "Sequence[ProviderUsage]":
    """Show calls, errors, latencies and costs by provider."""
    return await crib.connections.usage(since=crib.clock.now() - timedelta(days=days))


def _explain_problem(problem: ValueError) -> str:
    """The errors of a definition, without its values, which may be secrets."""
    from pydantic import ValidationError

    errors = problem.errors() if isinstance(problem, ValidationError) else []
    return "; ".join(f"{'.'.join(map(str, found['loc']))}: {found['msg']}" for found in errors)


async def _all(crib: "Crib") -> "Sequence[ProviderDefinition]":
    return tuple(crib.providers.current(crib.principal.realm))


async def _one(crib: "Crib", name: str) -> "ProviderDefinition":
    return await crib.connections.provider(name)


PROVIDERS: "Resource[ProviderDefinition]" = Resource(
    noun="provider",
    name=Name,
    list=_all,
    get=_one,
    shown=ItemFormat(
        queried="providers",
        table=Table(
            {
                "Name": lambda each: each.name,
                "Kind": lambda each: each.connection.kind,
                "Address": lambda each: each.address,
                "Auth": lambda each: each.auth.kind,
                "Enabled": lambda each: each.enabled,
            }
        ),
    ),
    help=HelpTexts(
        {"show": "Print a provider's definition.\n\nIt has references to secrets, never a secret."}, {"show": " crm"}
    ),
)
PROVIDERS.add_to(app)

reference_app = CommandApp("Inspect and sync the reference data of providers.")

Provider = Annotated[
    str | None, typer.Argument(metavar="PROVIDER", help="Name of the provider; all if it is left out.")
]
Lists = Annotated[list[str] | None, typer.Argument(metavar="LIST", help="Lists of it; all if none is given.")]

Accept = Annotated[bool, typer.Option("--accept", help="Accept lists that have lost most of their values.")]
OneProvider = Annotated[str, typer.Argument(metavar="PROVIDER", help="Name of the provider.")]
OneList = Annotated[str, typer.Argument(metavar="LIST", help="Name of the list.")]


@command(reference_app, "list", example="toolcrib reference list")
@shows(print_references)
async def list_references(crib: "Crib", provider: Provider = None) -> "Sequence[ReferenceSnapshot]":
    """List what providers declare, each with its last snapshot and its age."""
    return await crib.reference_data.list(provider)


def _has_failed(found: "Sequence[ReferenceSnapshot]") -> bool:
    failed = [snapshot for snapshot in found if snapshot.error is not None]
    for snapshot in failed:
        print(f"toolcrib: {snapshot.provider}: {snapshot.error}", file=sys.stderr)
    return bool(failed)


@command(reference_app, "sync", example="toolcrib reference sync crm deal_stages")
@shows(print_references, fails=_has_failed)
async def sync_reference(
    crib: "Crib", provider: Provider = None, names: Lists = None, accept: Accept = False
) -> "Sequence[ReferenceSnapshot]":
    """Read lists now; exit status 1 if one could not be read."""
    with progress("Reading reference data"):
        return await crib.reference_data.sync(provider, *(names or ()), accept=accept)


def _print_list(found: "ListReadings") -> None:
    print_readings(found.readings)


@command(reference_app, "show", example="toolcrib reference show crm deal_stages")
@shows(_print_list)
async def show_reference(crib: "Crib", provider: OneProvider, name: OneList) -> "ListReadings":
    """Show the last readings of a list, the newest first."""
    from toolcrib.interfaces.cli.render.documents import ListReadings

    readings = await crib.reference_data.history(provider, name)
    return ListReadings(provider=provider, name=name, readings=tuple(readings))
