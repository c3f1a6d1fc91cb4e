"""The opened models of a process, one per configuration, and the wrapper for models that write their calls as text.

Anyone who can save a definition can name an address or a key's variable in it. Such an address must be allowed by the
egress policy, and the variable must be released. Addresses of the catalogue and of the application's code are trusted.
"""

from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import count
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from msgspec import structs

from toolcrib.contracts import InvalidSettings, LLMConfig, OnMalformed
from toolcrib.infrastructure.net import HttpSession
from toolcrib.llm.base.messages import Event, Request, Response, TokenUsage
from toolcrib.llm.base.prices import Cost, Prices, is_sold
from toolcrib.llm.base.quirks import Quirks
from toolcrib.llm.base.transport import HttpTransport
from toolcrib.llm.models.catalog import PROVIDERS, Provider, open_model, resolve
from toolcrib.llm.models.model import Endpoint, LanguageModel, open_candidates
from toolcrib.llm.models.model_listing import ModelListing
from toolcrib.llm.text import TextTools


class TextProtocol:
    """A model that is offered its tools as text.

    Args:
        model: The model; it is never sent a tool or a schema.
        on_malformed: What becomes of an answer with a malformed block: `refuse` runs none of its calls, `skip` all
            the others.
    """

    def __init__(self, model: LanguageModel, on_malformed: OnMalformed = "refuse") -> None:
        self.name = model.name
        self._model = model
        self._quirks = Quirks(tool_calling="text", structured="prompt", on_malformed=on_malformed)

    def __repr__(self) -> str:
        return f"TextProtocol({self._model!r})"

    async def request(self, request: Request) -> Response:
        """See `LanguageModel.request`."""
        tools = TextTools(request, self._quirks)
        return tools.response(await self._model.request(tools.request))

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        """See `LanguageModel.stream`."""
        tools = TextTools(request, self._quirks)
        async with aclosing(self._model.stream(tools.request)) as events:
            async for event in events:
                for shown in tools.read((event,)):
                    yield shown

    def cost(self, usage: TokenUsage, at: datetime) -> Cost:
        """See `LanguageModel.cost`."""
        return self._model.cost(usage, at)


class UnpricedModel(NamedTuple):
    """A model whose price is not known."""

    model: str
    """`provider:model`."""
    why: str
    is_own: bool = False
    """It runs on this machine, where nobody sends a bill."""
    is_unknown: bool = False
    """The prices of its provider are known, and this model is not among them."""


_ONE_OF_EACH: Final = TokenUsage(1, 1)
_OWN_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})
MOST_OPENED: Final = 1_000
"""Models that are kept; a configuration beyond them takes the place of the oldest."""


Substitute: TypeAlias = Callable[[LLMConfig, Callable[[], LanguageModel]], LanguageModel]
"""Chooses the model of a configuration; the second argument opens the model that would be used otherwise."""


class ModelPool:
    """Opens models and keeps them.

    Args:
        session: Reaches what the egress policy allows everybody.
        given: Models by reference that are used instead of opening one.
        environment: Where API keys are.
        is_released: Whether definitions may send a variable (first) to a host (third): those of a realm (second), or
            of any realm if null.
        prices: What models cost.
        providers: Providers beside those that everybody has: the operator's choice, their addresses included.
    """

    def __init__(
        self,
        session: HttpSession,
        *,
        given: Mapping[str, LanguageModel],
        environment: Mapping[str, str],
        is_released: Callable[[str, str | None, str], bool],
        prices: Prices,
        providers: Mapping[str, Provider] | None = None,
    ) -> None:
        self._session = session
        self._given = dict(given)
        self._environment = environment
        self._is_released = is_released
        self._prices = prices
        self._more = providers or {}
        self._loans = count(1)
        self._trusted_urls: set[str] = set()
        self._trusted: dict[str, HttpSession] = {}
        self._opened: dict[tuple[object, ...], LanguageModel] = {}
        self._substitutes: tuple[Substitute, ...] = ()
        self._observers: tuple[Substitute, ...] = ()

    def trust(self, base_url: str) -> None:
        """Let models be reached at an address that the application named in code, a local one too."""
        self._trusted_urls.add(base_url)

    @contextmanager
    def lent(self, name: str, model: LanguageModel) -> Generator[str]:
        """Have a model under a reference for a while; gives the reference, which no other loan has."""
        reference = f"{name}#{next(self._loans)}"
        self._given[reference] = model
        try:
            yield reference
        finally:
            del self._given[reference]

    def substitute(self, substitute: Substitute, *, observes: bool = False) -> Callable[[], None]:
        """Have a function choose the models from now on, also those of requests that are made in other tasks.

        Args:
            substitute: Chooses; of several, the one that was added last decides.
            observes: It only wraps the model that is used in the end, whichever other functions choose.

        Returns:
            Takes it back.
        """
        if observes:
            self._observers += (substitute,)
        else:
            self._substitutes += (substitute,)

        def take_back() -> None:
            self._observers = tuple(each for each in self._observers if each is not substitute)
            self._substitutes = tuple(each for each in self._substitutes if each is not substitute)

        return take_back

    def check(self, llm: LLMConfig, realm: str) -> None:
        """Compare a configuration with the catalogue and the variables released to a realm; nothing is opened.

        Raises:
            InvalidSettings: The reference is malformed, its provider unknown, or its key is not released.
        """
        for each in llm.candidates if llm.fallbacks else (llm,):
            if each.model not in self._given and not self._substitutes:
                self._endpoint(each, realm)

    def unpriced(self, llm: LLMConfig, realm: str, at: datetime) -> UnpricedModel | None:
        """Why nobody knows what a model costs, or one of its fallbacks; null if the prices are known.

        Raises:
            InvalidSettings: As `check`.
        """
        if llm.fallbacks:
            return next(filter(None, (self.unpriced(each, realm, at) for each in llm.candidates)), None)
        given = self.model(llm) if self._substitutes else self._given.get(llm.model)
        if given is not None:
            cost = given.cost(_ONE_OF_EACH, at)
            return None if cost.usd is not None else UnpricedModel(llm.model, cost.source)
        endpoint = self._endpoint(llm, realm)
        cost = self._prices.cost(_ONE_OF_EACH, endpoint.provider, endpoint.model, at)
        if cost.usd is not None:
            return None
        is_own = urlsplit(endpoint.base_url).hostname in _OWN_HOSTS
        is_unknown = llm.base_url is None and not is_own and is_sold(endpoint.provider)
        return UnpricedModel(llm.model, cost.source, is_own=is_own, is_unknown=is_unknown)

    def model(self, llm: LLMConfig, *, own: bool = False) -> LanguageModel:
        """The model that a configuration names; the same one for the same configuration.

        Whether a realm may use it is checked when a definition is saved and before a run begins (`check`).

        Args:
            llm: The configuration.
            own: Whether functions that were given to `substitute` are passed over.

        Raises:
            InvalidSettings: As `check`.
        """
        if llm.fallbacks:
            return open_candidates(llm, partial(self.model, own=own))
        if not own and (self._substitutes or self._observers):
            return self._substituted(llm)
        given = self._given.get(llm.model)
        if given is not None:
            return TextProtocol(given, llm.on_malformed) if llm.tool_calling == "text" else given
        trusted = self._is_trusted(llm)
        key = (llm.model, llm.base_url, llm.api_key_env, llm.tool_calling, llm.on_malformed, llm.inputs, trusted)
        if key not in self._opened:
            opened = self._open(llm, trusted=trusted)
            if len(self._opened) >= MOST_OPENED:
                del self._opened[next(iter(self._opened))]
            self._opened[key] = opened
        return self._opened[key]

    @property
    def listing(self) -> ModelListing:
        """Lists what can be opened."""
        return ModelListing(self._given, self._more, self._environment, self._prices)

    async def close(self) -> None:
        """Let go of all connections that the pool made."""
        for session in self._trusted.values():
            await session.close()

    def _substituted(self, llm: LLMConfig) -> LanguageModel:
        choose: Callable[[], LanguageModel] = partial(self.model, llm, own=True)
        for substitute in (*self._substitutes, *self._observers):
            choose = partial(substitute, llm, choose)
        return choose()

    def _open(self, llm: LLMConfig, *, trusted: bool) -> LanguageModel:
        endpoint = self._endpoint(llm, None)
        return open_model(
            llm.model,
            HttpTransport(self._session_for(endpoint.base_url) if trusted else self._session),
            base_url=llm.base_url,
            api_key_env=llm.api_key_env,
            tool_calling=llm.tool_calling,
            on_malformed=llm.on_malformed,
            inputs=llm.inputs,
            prices=self._prices,
            environment=self._environment,
            more=self._more,
            key=lambda: endpoint.key_in(self._environment),
        )

    def _is_trusted(self, llm: LLMConfig) -> bool:
        return llm.base_url is None or llm.base_url in self._trusted_urls

    def _endpoint(self, llm: LLMConfig, realm: str | None) -> Endpoint:
        endpoint = resolve(
            llm.model,
            base_url=llm.base_url,
            api_key_env=llm.api_key_env,
            inputs=llm.inputs,
            environment=self._environment,
            more=self._more,
        )
        variable = endpoint.api_key_env
        named_here = llm.api_key_env is not None or not self._is_trusted(llm)
        host = urlsplit(endpoint.base_url).hostname or ""
        if variable is not None and named_here and not self._is_released(variable, realm, host):
            if endpoint.key_required or endpoint.key_in(self._environment):
                msg = (
                    f"model {llm.model!r} would send the variable {variable!r} to {host!r}, and it is not released to "
                    "definitions for that host; name a released one in api_key_env, have the operator release it "
                    "(TOOLCRIB_RELEASED_ENV), "
                    "or use the provider's own address and variable"
                )
                raise InvalidSettings(msg)
            endpoint = structs.replace(endpoint, api_key_env=None)  # nothing is there to be sent, and nothing ever is
        provider = PROVIDERS.get(endpoint.provider) or self._more[endpoint.provider]
        if provider.sign_in is not None and not self._is_trusted(llm):
            msg = (
                f"model {llm.model!r} would sign in at {llm.base_url!r} with this machine's credentials; "
                "omit base_url, or set the address in the application's code"
            )
            raise InvalidSettings(msg)
        return endpoint

    def _session_for(self, base_url: str) -> HttpSession:
        """A session that may also reach this very address."""
        parts = urlsplit(base_url)
        port = parts.port or {"https": 443, "http": 80}[parts.scheme]
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        origin = f"{host}:{port}"
        if origin not in self._trusted:
            egress = self._session.policy
            self._trusted[origin] = HttpSession(replace(egress, allow=(*egress.allow, origin)))
        return self._trusted[origin]
