"""The synchronous operations on models.

Written by `python -m tools.rest_client`.
"""

from collections.abc import Iterator

from toolcrib.client.answers import ModelPage, ModelProviderList
from toolcrib.client.groups import SyncApi
from toolcrib.client.operations import models as asynchronous
from toolcrib.contracts.specs.model_listing import ModelInfo


class ModelsApi(SyncApi[asynchronous.AsyncModelsApi]):
    """The operations on models."""

    def list_known(
        self,
        *,
        provider: str | None = None,
        q: str | None = None,
        usable: bool | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> ModelPage:
        """Models by reference, page by page, as far as the price data or the application names them."""
        return self._loop.run(self._api.list_known, provider=provider, q=q, usable=usable, after=after, limit=limit)

    def each_known(
        self, *, provider: str | None = None, q: str | None = None, usable: bool | None = None, limit: int | None = None
    ) -> Iterator[ModelInfo]:
        """Models by reference, page by page, as far as the price data or the application names them.

        All of them: the next page is read when it is needed.
        """
        return self._loop.iterate(self._api.each_known, provider=provider, q=q, usable=usable, limit=limit)

    def list_providers(self) -> ModelProviderList:
        """Providers of models: their wires and addresses, and whether their keys are set."""
        return self._loop.run(self._api.list_providers)

    def get_known(self, reference: str) -> ModelInfo:
        """One model by its reference, `provider:model`, also one that no list has."""
        return self._loop.run(self._api.get_known, reference)
