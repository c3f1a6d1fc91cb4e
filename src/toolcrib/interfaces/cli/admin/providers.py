"""`toolcrib provider`: the systems that tools talk to: defined, tried out, connected by people, synced."""

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.support.options import DEFAULT_STORE, AcceptChanges, AsJson, Store
from toolcrib.interfaces.cli.support.session_part import with_crib

if TYPE_CHECKING:
    from toolcrib.contracts import Consent, Contract, ProviderDefinition
    from toolcrib.crib import Crib

app = typer.Typer(help="Define, test and connect the systems that tools talk to.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the provider.", show_default=False)]
File = Annotated[Path, typer.Argument(metavar="FILE", help="A ProviderDefinition as JSON or YAML; - for stdin.")]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="Of the page on this machine; 0 for a free one.")]
Paste = Annotated[bool, typer.Option("--paste", help="Ask for the URL to which the browser was sent, without a page.")]
Shared = Annotated[bool, typer.Option("--shared", help="The connection of the whole realm, not one's own.")]


@app.command("list")
def list_providers(store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List the providers."""

    async def read(crib: "Crib") -> "list[ProviderDefinition]":
        return list(crib.providers.current(crib.principal.realm))

    found = with_crib(store, read)
    if as_json:
        print(json.dumps([provider.model_dump(mode="json") for provider in found], indent=2, ensure_ascii=False))
        return
    from toolcrib.interfaces.cli.render.tables import print_rows

    rows = [
        (each.name, each.connection.kind, each.address, each.auth.kind, "yes" if each.enabled else "no")
        for each in found
    ]
    print_rows(("Name", "Kind", "Address", "Auth", "Enabled"), rows)


@app.command("show")
def show(name: Name, store: Store = DEFAULT_STORE) -> None:
    """Print a provider's definition as JSON; secrets stand in it by reference only."""

    async def read(crib: "Crib") -> "ProviderDefinition":
        return crib.connections.provider(name, crib.principal)

    _print(with_crib(store, read))


@app.command("add")
def add(file: File, store: Store = DEFAULT_STORE) -> None:
    """Define a provider, or define it anew."""
    import yaml

    from toolcrib.contracts import InvalidDefinition, InvalidInput, ProviderDefinition

    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
        body = yaml.safe_load(text)
    except OSError as problem:
        msg = f"{file} cannot be read: {problem.strerror}"
        raise InvalidInput(msg) from problem
    except (yaml.YAMLError, UnicodeDecodeError):
        msg = f"{file} is neither JSON nor YAML"
        raise InvalidInput(msg) from None
    try:
        provider = ProviderDefinition.model_validate(body)
    except ValueError as problem:
        raise InvalidDefinition(_explained(problem)) from None
    with_crib(store, lambda crib: crib.save_provider(provider), new=True)
    print(f"provider {provider.name} is defined")


@app.command("test")
def try_out(name: Name, store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Reach a provider with its credentials, harmlessly; exit status 1 if that does not work."""
    found = with_crib(store, lambda crib: crib.connections.test(name))
    if as_json:
        _print(found)
    else:
        marks = {True: "yes", False: "no", None: "unknown"}
        print(f"reachable: {marks[found.reachable]}, authenticated: {marks[found.authenticated]}: {found.message}")
    if not found.reachable or found.authenticated is False:
        raise typer.Exit(1)


@app.command("discover")
def discover(name: Name, store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List what a provider offers for import; nothing is imported."""
    found = with_crib(store, lambda crib: crib.connections.discover(name))
    if as_json:
        _print(found)
        return
    for item in found.items:
        print(item)
    print(f"{len(found.items)} {found.kind}; {found.message}", file=sys.stderr)


@app.command("sync")
def sync(name: Name, accept: AcceptChanges = False, store: Store = DEFAULT_STORE) -> None:
    """Ask a provider again what it offers, and take in what is new and changed; what may harm callers waits."""
    found = with_crib(store, lambda crib: crib.imports.sync(name, accept=accept))
    if found.outcome is not None:
        from toolcrib.interfaces.cli.render.tables import print_outcome

        print_outcome(found.outcome)
    print(f"{name} offers {len(found.tools)} tools")


@app.command("connect")
def connect(name: Name, port: Port = 0, paste: Paste = False, store: Store = DEFAULT_STORE) -> None:
    """Connect to a provider in a browser: open the URL that is printed, and grant what is asked for."""

    async def through_page(crib: "Crib") -> "Consent":
        from toolcrib.interfaces.cli.admin.loopback import landing

        async with landing(port) as page:
            request = await crib.connections.begin(name, redirect_uri=page.redirect_uri)
            print(f"open {request.url}", file=sys.stderr)
            seconds = (request.expires_at - crib.clock.now()).total_seconds()
            return await crib.connections.finish(await asyncio.wait_for(page.arrival(request.state), seconds))

    async def through_paste(crib: "Crib") -> "Consent":
        request = await crib.connections.begin(name, redirect_uri=f"http://127.0.0.1:{port or 8765}/callback")
        print(f"open {request.url}", file=sys.stderr)
        return await crib.connections.finish(typer.prompt("URL that the browser was sent to", err=True))

    try:
        consent = with_crib(store, through_paste if paste else through_page)
    except TimeoutError:
        from toolcrib.contracts import Conflict

        raise Conflict("nobody came back from the authorization server in time; connect again") from None
    print(f"provider {name} is connected for {consent.user or 'the whole realm'}")


@app.command("connections")
def connections(store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List one's own connections and those of the realm."""
    found = with_crib(store, lambda crib: crib.connections.list())
    if as_json:
        print(json.dumps([consent.model_dump(mode="json") for consent in found], indent=2, ensure_ascii=False))
        return
    from toolcrib.interfaces.cli.render.tables import print_rows

    rows = [(each.provider, each.user or "(all)", each.status, " ".join(each.scopes)) for each in found]
    print_rows(("Provider", "User", "Status", "Scopes"), rows)


@app.command("disconnect")
def disconnect(name: Name, shared: Shared = False, store: Store = DEFAULT_STORE) -> None:
    """Give up a connection; exit status 1 if its tokens could not be taken back."""
    told = with_crib(store, lambda crib: crib.connections.revoke(name, shared=shared))
    print(told.message)
    if not told.revoked:
        raise typer.Exit(1)


def _print(found: "Contract") -> None:
    print(found.model_dump_json(indent=2))


def _explained(problem: ValueError) -> str:
    """What is wrong with a definition, without what stands in it, which may be a secret."""
    from pydantic import ValidationError

    errors = problem.errors() if isinstance(problem, ValidationError) else []
    return "; ".join(f"{'.'.join(map(str, found['loc']))}: {found['msg']}" for found in errors)
