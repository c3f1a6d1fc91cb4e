"""`HttpRuntime`: one call of an HTTP tool, one page or all of them."""

from collections.abc import Callable
from typing import TypeAlias

from toolcrib.contracts import ErrorCode, HttpImplementation, ProviderDefinition, Reason
from toolcrib.executor import CallFailed, Clock, Dispatch, Outcome, Secrets, error
from toolcrib.net import HttpSession
from toolcrib.providers import Credentials, credentials_for
from toolcrib.runtimes.http.exchange import Exchange
from toolcrib.runtimes.http.pages import follow

Providers: TypeAlias = Callable[[str, str], ProviderDefinition | None]
"""The provider of a realm (first) by name (second)."""


class HttpRuntime:
    """Executes tools of kind `http`.

    A call is one attempt: which failures are tried again, and when, is the tool's error handling in the executor. The
    one exception protects work: if a page after the first is refused by a rate limit, the same page is asked for once
    more after the wait that the other side names (a second if it names none), unless that is longer than 10 seconds. A
    second refusal fails the call. Every request, a repeated one included, is taken from the run's budget first.

    A paged tool returns the last page's document with the items of all pages in its list, and `metadata["paging"]` says
    how many pages there were and whether the list is complete. A call that gives the cursor gets that page alone; one
    that gives the page size gets no further pages once it has so many items. Only reading methods follow redirects: a
    redirected write would arrive as something else.

    Args:
        session: The way out.
        providers: Finds providers.
        secrets: Resolves the references of their authentication.
        clock: Time.
    """

    def __init__(self, session: HttpSession, providers: Providers, secrets: Secrets, *, clock: Clock) -> None:
        self._session = session
        self._providers = providers
        self._secrets = secrets
        self._clock = clock

    async def run(self, dispatch: Dispatch) -> Outcome:
        """Execute once.

        Raises:
            CallFailed: As the tables of `failures` say; it names the credentials that must not be shown.
        """
        exchange = self._begin(dispatch)
        paging = exchange.implementation.paging
        try:
            if paging is None or dispatch.input.get(paging.cursor_in) is not None:
                response = await exchange.send(dispatch.input)
                return exchange.outcome(response, exchange.read(response))
            return await follow(exchange, paging)
        except CallFailed as failure:
            failure.secrets = exchange.credentials.secrets
            raise

    def _begin(self, dispatch: Dispatch) -> Exchange:
        tool = dispatch.tool.definition
        implementation = tool.implementation
        if not isinstance(implementation, HttpImplementation):
            message = f"tool {tool.name!r} is of kind {implementation.kind!r}, which this runtime does not execute"
            raise CallFailed(error(ErrorCode.UNKNOWN, Reason.RUNTIME_MISSING, message))
        principal = dispatch.context.principal
        provider = None if implementation.provider is None else self._provider(dispatch, implementation.provider)
        credentials = (
            Credentials()
            if provider is None
            else credentials_for(provider, implementation.url, lambda text: self._secrets.resolve(text, principal))
        )
        headers = {} if provider is None else provider.headers
        return Exchange(dispatch, tool, implementation, headers, credentials, self._session, self._clock)

    def _provider(self, dispatch: Dispatch, name: str) -> ProviderDefinition:
        provider = self._providers(dispatch.tool.realm, name)
        if provider is None:
            message = (
                f"tool {dispatch.tool.name!r} authenticates with provider {name!r}, which does not exist; define it"
            )
            raise CallFailed(error(ErrorCode.AUTH_REQUIRED, Reason.MISSING_SECRET, message))
        return provider
