"""The models that definitions can name: their providers, prices and abilities. Nothing is sent to a provider.

Example:
    for provider in await crib.model_catalog.providers():
        print(provider.name, provider.usable, provider.why_not)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from toolcrib.contracts import NotFound
from toolcrib.contracts.specs.model_listing import ModelInfo, ModelProviderInfo
from toolcrib.core.policy import permits, require_grant
from toolcrib.crib.container.access import Actor
from toolcrib.crib.container.container import CribServices


@dataclass(frozen=True, slots=True)
class ModelsPage:
    """Some models by reference."""

    items: Sequence[ModelInfo]
    more: bool
    """Whether others follow; they come after the last reference."""


class ModelCatalog:
    """Lists models and their providers. A principal sees those of providers that it has `ai://models/{name}/read` for.

    Args:
        parts: The parts of the crib.
        actor: The actor of the crib.
    """

    def __init__(self, parts: CribServices, actor: Actor) -> None:
        self._models = parts.models
        self._clock = parts.outside.clock
        self._actor = actor

    async def providers(self) -> Sequence[ModelProviderInfo]:
        """The providers of models by name, whether they can be asked or not.

        Example:
            for provider in await crib.model_catalog.providers():
                print(provider.name, provider.wire, provider.key_set)
        """
        await self._actor.authorize()
        return [each for each in self._models.listing.providers() if self._may_see(each.name)]

    async def page(
        self,
        *,
        provider: str | None = None,
        text: str = "",
        usable: bool | None = None,
        after: str = "",
        limit: int = 50,
    ) -> ModelsPage:
        """The models that come after a reference, as far as the price data or the application names them.

        Args:
            provider: Only models of this provider; null for those of all.
            text: Text to find in the reference.
            usable: Only models of providers that can be asked now, or cannot; null for all.
            after: A reference; empty for the beginning.
            limit: At most so many.

        Example:
            page = await crib.model_catalog.page(provider="openai", text="4o", limit=5)
            for model in page.items:
                print(model.reference, model.context_window, model.prices)
        """
        listing = self._models.listing
        shown = [each for each in await self.providers() if provider in {None, each.name}]
        wanted = [each.name for each in shown if usable in {None, each.usable}]
        references = sorted(reference for name in wanted for reference in listing.references(name))
        found = (each for each in references if each > after and text.lower() in each.lower())
        taken, at = list(islice(found, limit + 1)), self._clock.now()
        return ModelsPage([listing.model(reference, at) for reference in taken[:limit]], len(taken) > limit)

    async def get(self, reference: str) -> ModelInfo:
        """What is known of one model, also of one that no list has.

        Args:
            reference: `provider:model`.

        Raises:
            NotFound: There is no such provider, or no such model where all are known.
            PermissionDenied: The principal has no grant to see the provider's models.

        Example:
            model = await crib.model_catalog.get("anthropic:claude-sonnet-4-5")
            print(model.prices or model.why_unpriced)
        """
        who, name = await self._actor.authorize(), reference.partition(":")[0]
        if self._actor.caller is not None:
            require_grant(who, f"ai://models/{name}/read")
        found = self._models.listing.model(reference, self._clock.now())
        if name == "local" and reference not in self._models.listing.references(name):
            raise NotFound(f"model {reference!r} is not installed; install it: toolcrib model add {reference[6:]}")
        return found

    def _may_see(self, provider: str) -> bool:
        caller = self._actor.caller
        return caller is None or permits(caller.grants, f"ai://models/{provider}/read")
