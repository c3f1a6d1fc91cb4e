"""Lists the models that an installation can use, from the catalogue, the price data and what its application has given.

Nothing is sent to a provider, so a model can be missing here and be there: the price data is all that names models.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from toolcrib.contracts import InvalidSettings, NotFound
from toolcrib.contracts.specs.model_listing import ModelInfo, ModelOrigin, ModelProviderInfo
from toolcrib.llm.base.messages import TokenUsage
from toolcrib.llm.base.prices import Prices, describe_model, is_sold, models_sold
from toolcrib.llm.local import CONTEXT_TOKENS, LONGEST_ANSWER, find_model, list_installed, models_folder
from toolcrib.llm.models.catalog import PROVIDERS, Provider, quirks_of
from toolcrib.llm.models.model import LanguageModel
from toolcrib.llm.wires import AnthropicWire, ChatWire, ResponsesWire

_LENT = "#"
"""In the reference of a model that is there only for a while."""
_CLAUDE = "claude"
"""In the name of each model of the Anthropic wire; clouds sell others beside them."""
_ONE_OF_EACH = TokenUsage(1, 1)


def _sold_over(provider: str) -> Sequence[str]:
    """The models that the price data names for a provider, as far as its wire speaks to them."""
    known = PROVIDERS.get(provider)
    if known is None:
        return ()
    names = models_sold(provider)
    if known.wire is ChatWire or known.wire is ResponsesWire:
        return names
    return [name for name in names if (_CLAUDE in name) is (known.wire is AnthropicWire)]


class ModelListing:
    """The providers and models of an installation.

    Args:
        given: The application's models, by reference.
        more: Providers beside those of the catalogue.
        environment: Where keys are, and the places of clouds.
        prices: The rates.
    """

    def __init__(
        self,
        given: Mapping[str, LanguageModel],
        more: Mapping[str, Provider],
        environment: Mapping[str, str],
        prices: Prices,
    ) -> None:
        self._given = given
        self._more = more
        self._environment = environment
        self._prices = prices

    def providers(self) -> Sequence[ModelProviderInfo]:
        """All providers by name."""
        own = {reference.partition(":")[0] for reference in self._references_given()}
        named = sorted({*PROVIDERS, *self._more, *own})
        return [self._provider(name) for name in named]

    def references(self, provider: str) -> Sequence[str]:
        """The models of a provider, `provider:model`, as far as anything here names them; sorted."""
        own = [given for given in self._references_given() if given.partition(":")[0] == provider]
        if provider == "local":
            names: Sequence[str] = [model.name for model in list_installed(models_folder(self._environment))]
        else:
            names = _sold_over(provider)
        return sorted({*own, *(f"{provider}:{name}" for name in names)})

    def model(self, reference: str, at: datetime) -> ModelInfo:
        """What is known of a model, also of one that nothing here names.

        Args:
            reference: `provider:model`.
            at: The moment whose rates are meant.

        Raises:
            NotFound: There is no such provider, or the application has not given this model.
        """
        given = self._given.get(reference)
        if given is not None:
            return self._given_model(reference, given, at)
        name, _, model = reference.partition(":")
        provider = PROVIDERS.get(name) or self._more.get(name)
        if provider is None or not model:
            msg = f"there is no model {reference!r}; name it as provider:model, with one of the listed providers"
            raise NotFound(msg)
        known, quirks = describe_model(name, model), quirks_of(provider, model)
        rates = self._prices.rates(name, model, at)
        is_local = name == "local"
        return ModelInfo(
            reference=reference,
            provider=name,
            title=find_model(model).title if is_local else known.title,
            description=known.description,
            usable=self._why_not(name, provider) is None,
            prices=None if isinstance(rates, str) else rates,
            why_unpriced=rates if isinstance(rates, str) else None,
            context_window=CONTEXT_TOKENS if is_local else known.context_window,
            max_output_tokens=LONGEST_ANSWER if is_local else None,
            tools=quirks.tool_calling,
            structured_output=quirks.structured,
            inputs=tuple(sorted(quirks.inputs)),
            reasoning=True if quirks.encrypted_reasoning or not quirks.sampling else None,
            deprecated=known.deprecated,
        )

    def _given_model(self, reference: str, model: LanguageModel, at: datetime) -> ModelInfo:
        cost = model.cost(_ONE_OF_EACH, at)
        return ModelInfo(
            reference=reference,
            provider=reference.partition(":")[0],
            usable=True,
            prices=None,
            why_unpriced=f"the application's model counts by itself: {cost.source}",
            context_window=None,
            max_output_tokens=None,
            tools=None,
            structured_output=None,
            inputs=None,
            reasoning=None,
            deprecated=None,
        )

    def _provider(self, name: str) -> ModelProviderInfo:
        provider = PROVIDERS.get(name) or self._more.get(name)
        if provider is None:
            return ModelProviderInfo(
                name=name,
                origin="application",
                wire=None,
                address=None,
                key_env=None,
                key_set=None,
                usable=True,
                prices_known=False,
                tool_calling=None,
            )
        why_not = self._why_not(name, provider)
        origin: ModelOrigin = "built_in" if name in PROVIDERS else "operator"
        return ModelProviderInfo(
            name=name,
            origin=origin,
            wire=type(provider.wire(name)).__name__.removesuffix("Wire").lower(),
            address=None if name == "local" else self._address(provider),
            key_env=provider.api_key_env,
            key_set=None if provider.api_key_env is None else self._has_key(provider),
            usable=why_not is None,
            why_not=why_not,
            prices_known=is_sold(name),
            tool_calling=provider.quirks.tool_calling,
        )

    def _why_not(self, name: str, provider: Provider) -> str | None:
        """What is missing before a definition can name a model by its reference alone."""
        if provider.base_url is None:
            return "definitions must name its address in base_url"
        if callable(provider.base_url):
            try:
                provider.base_url(self._environment)
            except InvalidSettings as problem:
                return str(problem)
        if name == "local" and not self.references(name):
            return "no model is installed; install one: toolcrib model add"
        if provider.key_required and not self._has_key(provider):
            return f"it has no key; set the variable {provider.api_key_env}"
        return None

    def _address(self, provider: Provider) -> str | None:
        if not callable(provider.base_url):
            return provider.base_url
        try:
            return provider.base_url(self._environment)
        except InvalidSettings:
            return None

    def _has_key(self, provider: Provider) -> bool:
        names = (provider.api_key_env, provider.other_key_env)
        return any(self._environment.get(name) for name in names if name is not None)

    def _references_given(self) -> Iterator[str]:
        return (reference for reference in self._given if _LENT not in reference)
