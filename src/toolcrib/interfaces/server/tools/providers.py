"""Routes of providers, their connections and reference data, and of secrets. No route returns the value of a secret.

The redirect of an authorization server has no API key. It is accepted only in the browser that started the connection,
which has a cookie for this one state. Other browsers get instructions for completing the connection with a key.
"""

from html import escape
from typing import Annotated, Final, Self

from fastapi import Body, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import AwareDatetime, SecretStr

from toolcrib.contracts import (
    Consent,
    ConsentRequest,
    Contract,
    Discovery,
    InvalidDefinition,
    PermissionDenied,
    ProviderCheck,
    ProviderDefinition,
    ProviderSync,
    ReferenceReading,
    ReferenceSnapshot,
    Revocation,
    SecretEntry,
    SecretScope,
    ToolcribError,
)
from toolcrib.contracts.workflows.provider_use import ProviderImpact, ProviderRemoval, ProviderUsage, ToolsOfProvider
from toolcrib.core.policy import permits
from toolcrib.crib import ActingCrib
from toolcrib.crib.tools.resources import QueryPage
from toolcrib.interfaces.server.http.caller_rights import Caller, CribDep, WholeCrib, demand, demand_provider
from toolcrib.interfaces.server.http.requests import Routes
from toolcrib.interfaces.server.queries import (
    ALL,
    After,
    Filter,
    ListLimit,
    QueryBody,
    Sort,
    add_count,
    add_queries,
    to_page,
)
from toolcrib.interfaces.server.views.base import ListView, PageView

providers = Routes(prefix="/providers", tags=("providers",))
connections = Routes(prefix="/connections", tags=("connections",))

CALLBACK: Final = "/api/v1/connections/callback"
"""Where authorization servers send browsers; open to everybody."""

_COOKIE: Final = "toolcrib_connect"
_PAGE: Final = "<!doctype html><title>Toolcrib</title><p>{text}</p>"
_FINISH: Final = "This browser did not begin to connect. Finish with POST /api/v1/connections and this page's address."


class ProviderView(ProviderDefinition):
    """A provider's definition, and how its syncs stand."""

    last_sync: ProviderSync | None = None
    """Its last sync or import, and the next one; null if there was none and no schedule wants one."""

    @classmethod
    async def of(cls, provider: ProviderDefinition, crib: ActingCrib) -> Self:
        """The view of a provider."""
        found = await crib.imports.last_sync(provider.name)
        known = None if found.at is None and found.next_at is None else found
        return cls.model_validate({**dict(provider), "last_sync": known})


class ProviderBody(ProviderView):
    """A provider's definition, as an author sends it; `last_sync` counts for nothing."""

    def definition(self) -> ProviderDefinition:
        """What the author says."""
        return ProviderDefinition.model_validate(self.model_dump(exclude={"last_sync"}))


class ProviderPage(PageView[ProviderView]):
    """Providers by name."""


class ProviderUsageList(ListView[ProviderUsage]):
    """The use of providers by name."""


class ConsentPage(ListView[Consent]):
    """Connections by provider."""


class ConnectBody(Contract):
    """Where the person comes back to."""

    redirect_uri: str | None = None
    """This server's own callback if null."""


class ConnectedBody(Contract):
    """What a person came back with."""

    url: str
    """The whole URL that the browser was sent to, with `state` and `code`."""


async def _to_page(page: QueryPage[ProviderDefinition], crib: ActingCrib) -> ProviderPage:
    return ProviderPage(items=tuple([await ProviderView.of(each, crib) for each in page.items]), next=page.next)


@providers.post("/query")
async def query_providers(body: QueryBody, crib: CribDep) -> ProviderPage:
    """The providers that a filter means, page by page."""
    return await _to_page(await crib.queries.page("providers", **dict(body)), crib)


add_count(providers, "providers")


@providers.get("")
async def list_providers(
    crib: CribDep,
    filter: Filter = None,
    sort: Sort = None,
    after: After = None,
    limit: ListLimit = None,
) -> ProviderPage:
    """The providers that the caller may read. They contain references to secrets, never values."""
    page = await crib.queries.page("providers", filter=filter, sort=sort, after=after, limit=limit or ALL)
    return await _to_page(page, crib)


@providers.post("", status_code=201)
async def define_provider(body: ProviderBody, crib: CribDep, caller: Caller) -> ProviderDefinition:
    """Create or replace a provider. The caller needs a grant for each secret that it names."""
    provider = body.definition()
    demand_provider(caller, provider)
    await crib.save_provider(provider)
    return provider


@providers.get("/{name}")
async def get_provider(name: str, crib: CribDep, caller: Caller) -> ProviderView:
    """A provider's definition, with its last sync."""
    demand(caller, f"ai://providers/{name}/read")
    return await ProviderView.of(await crib.connections.provider(name), crib)


@providers.put("/{name}")
async def replace_provider(name: str, body: ProviderBody, crib: CribDep, caller: Caller) -> ProviderDefinition:
    """Create or replace a provider under its name. The caller needs a grant for each secret that it names."""
    if body.name != name:
        msg = f"the provider is named {body.name!r} and the path {name!r}; a provider cannot be renamed"
        raise InvalidDefinition(msg)
    return await define_provider(body, crib, caller)


@providers.delete("/{name}")
async def remove_provider(
    name: str, crib: CribDep, caller: Caller, tools: ToolsOfProvider = "refuse"
) -> ProviderRemoval:
    """Remove a provider that nothing depends on; any other with `tools=remove` (its tools too) or `tools=keep`."""
    demand(caller, f"ai://providers/{name}/write")
    return await crib.connections.remove(name, tools=tools)


@providers.get("/{name}/impact")
async def get_provider_impact(name: str, crib: CribDep, caller: Caller) -> ProviderImpact:
    """What depends on a provider: its tools, agentic tools with its lists, and what is bound to these."""
    demand(caller, f"ai://providers/{name}/read")
    return await crib.connections.impact(name)


@providers.get("/{name}/usage")
async def get_provider_usage(
    name: str, crib: CribDep, caller: Caller, since: AwareDatetime | None = None, until: AwareDatetime | None = None
) -> ProviderUsage:
    """Calls, errors, latencies and costs of a provider in the runs that began in a time; the last 30 days."""
    demand(caller, f"ai://providers/{name}/read")
    [found] = await crib.connections.usage(name, since=since, until=until)
    return found


usage_router = Routes(prefix="/usage", tags=("providers",))


@usage_router.get("/providers")
async def list_provider_usage(
    crib: CribDep, caller: Caller, since: AwareDatetime | None = None, until: AwareDatetime | None = None
) -> ProviderUsageList:
    """The same of all providers that the caller may read."""
    await crib.authorize(newest=True)
    names = [each.name for each in crib.providers.current(caller.realm)]
    visible = [name for name in names if permits(caller.grants, f"ai://providers/{name}/read")]
    found = await crib.connections.usage(*visible, since=since, until=until) if visible else ()
    return ProviderUsageList(items=tuple(found))


@providers.post("/{name}/test")
async def test_provider(name: str, crib: CribDep, caller: Caller) -> ProviderCheck:
    """Reach a provider with the caller's credentials, by one harmless request or connection."""
    demand(caller, f"ai://providers/{name}/execute")
    return await crib.connections.test(name)


@providers.post("/{name}/discover")
async def discover_provider(name: str, crib: CribDep, caller: Caller) -> Discovery:
    """What a provider offers for import; nothing is imported."""
    demand(caller, f"ai://providers/{name}/execute")
    return await crib.connections.discover(name)


@providers.post("/{name}/connect")
async def connect_provider(
    name: str,
    request: Request,
    response: Response,
    crib: CribDep,
    caller: Caller,
    *,
    body: Annotated[ConnectBody, Body(default_factory=ConnectBody)],
) -> ConsentRequest:
    """The address where a person grants access. The cookie is for the browser of that person, who is the caller."""
    _demand_connect(crib, name, caller)
    redirect_uri = body.redirect_uri or str(request.base_url).rstrip("/") + CALLBACK
    begun = await crib.connections.begin(name, redirect_uri=redirect_uri)
    response.set_cookie(
        _COOKIE,
        crib.connections.ticket(begun.state),
        max_age=int((begun.expires_at - crib.clock.now()).total_seconds()),
        path=CALLBACK,
        secure=redirect_uri.startswith("https:"),
        httponly=True,
        samesite="lax",
    )
    return begun


@connections.get("")
async def list_connections(crib: CribDep, caller: Caller) -> ConsentPage:
    """The caller's own connections, and those of the realm to providers that the caller may read."""
    found = await crib.connections.list()
    visible = (each for each in found if each.user or permits(caller.grants, f"ai://providers/{each.provider}/read"))
    return ConsentPage(items=tuple(visible))


@connections.post("")
async def finish_connection(body: ConnectedBody, crib: CribDep) -> Consent:
    """Take in what a person came back with; the caller is who began."""
    return await crib.connections.finish(body.url)


@connections.get("/callback", include_in_schema=False)
async def callback(request: Request, crib: WholeCrib) -> Response:
    """Where a browser comes back to; see the module."""
    holder = crib.connections.holder_of(request.cookies.get(_COOKIE, ""), request.query_params.get("state", ""))
    if holder is None:
        return _page(403, _FINISH)
    try:
        consent = await crib.acting_as(holder).connections.finish(str(request.url))
    except ToolcribError as problem:
        return _page(problem.http_status, str(problem))
    return _page(200, f"Provider {consent.provider} is connected. This window can be closed.")


@connections.delete("/{name}")
async def revoke_connection(name: str, crib: CribDep, caller: Caller, *, shared: bool = False) -> Revocation:
    """Revoke a connection, the caller's own or the realm's; the response says whether its tokens were revoked."""
    demand(caller, f"ai://providers/{name}/{'write' if shared else 'execute'}")
    return await crib.connections.revoke(name, shared=shared)


def _demand_connect(crib: CribDep, name: str, caller: Caller) -> None:
    """Let pass who may use a provider; who connects for all of the realm has to be allowed to change it."""
    provider = crib.providers.find(caller.realm, name)
    ways = () if provider is None else (provider.auth, *provider.schemes.values())
    shared = any(getattr(auth, "shared", False) for auth in ways)
    demand(caller, f"ai://providers/{name}/{'write' if shared else 'execute'}")


def _page(status: int, text: str) -> Response:
    """A page that runs nothing and is kept nowhere."""
    headers = {
        "Cache-Control": "no-store",
        "Content-Security-Policy": "default-src 'none'",
        "Referrer-Policy": "no-referrer",
    }
    return HTMLResponse(_PAGE.format(text=escape(text)), status, headers)


router = Routes(prefix="/providers", tags=("providers",))


class SyncBody(Contract):
    """Which lists are to be read."""

    names: tuple[str, ...] = ()
    """All that the provider declares if empty."""
    accept: bool = False
    """Believe lists that have lost most of their values."""


class SnapshotPage(ListView[ReferenceSnapshot]):
    """Lists of a provider."""


class ReadingPage(ListView[ReferenceReading]):
    """Readings of a list."""


@router.get("/{name}/reference-data")
async def list_reference_data(name: str, crib: CribDep, caller: Caller) -> SnapshotPage:
    """Every list that a provider declares, with its last snapshot."""
    demand(caller, f"ai://providers/{name}/read")
    await crib.authorize(newest=True)
    return SnapshotPage(items=tuple(await crib.reference_data.list(name)))


@router.post("/{name}/reference-data/sync")
async def sync_reference_data(
    name: str, crib: CribDep, caller: Caller, body: Annotated[SyncBody, Body(default_factory=SyncBody)]
) -> SnapshotPage:
    """Read lists now. One that fails has its error and its last snapshot."""
    demand(caller, f"ai://providers/{name}/execute")
    await crib.authorize(newest=True)
    found = await crib.reference_data.sync(name, *body.names, accept=body.accept)
    return SnapshotPage(items=tuple(found))


@router.get("/{name}/reference-data/{list_name}/history")
async def reference_data_history(name: str, list_name: str, crib: CribDep, caller: Caller) -> ReadingPage:
    """The results of the last readings of a list, newest first."""
    demand(caller, f"ai://providers/{name}/read")
    await crib.authorize(newest=True)
    return ReadingPage(items=tuple(await crib.reference_data.history(name, list_name)))


secrets_router = Routes(prefix="/secrets", tags=("secrets",))


class SecretBody(Contract):
    """A secret's value."""

    value: SecretStr
    scope: SecretScope = "realm"


class SecretPage(PageView[SecretEntry]):
    """Secrets by name, without values."""


add_queries(secrets_router, "secrets", SecretPage)


@secrets_router.get("")
async def list_secrets(
    crib: CribDep,
    filter: Filter = None,
    sort: Sort = None,
    after: After = None,
    limit: ListLimit = None,
) -> SecretPage:
    """The secrets that the caller's calls can use and that the caller may know of."""
    page = await crib.queries.page("secrets", filter=filter, sort=sort, after=after, limit=limit or ALL)
    return to_page(SecretPage, page)


@secrets_router.put("/{name}")
async def set_secret(name: str, body: SecretBody, crib: CribDep, caller: Caller) -> SecretEntry:
    """Set or replace a secret of the caller or of the realm."""
    _demand(caller, name, body.scope)
    return await crib.secrets.set(name, body.value.get_secret_value(), scope=body.scope)


@secrets_router.delete("/{name}", status_code=204)
async def remove_secret(name: str, crib: CribDep, caller: Caller, scope: SecretScope = "realm") -> Response:
    """Remove a secret of the caller or of the realm."""
    _demand(caller, name, scope)
    await crib.secrets.remove(name, scope=scope)
    return Response(status_code=204)


def _demand(caller: Caller, name: str, scope: SecretScope) -> None:
    """Let pass who may write a secret; those of all realms are the operator's, who has the command line."""
    demand(caller, f"ai://secrets/{name}/write")
    if scope == "org":
        msg = f"secret {name!r} would be one of all realms, which the operator sets: `toolcrib secret set --scope org`"
        raise PermissionDenied(msg)
