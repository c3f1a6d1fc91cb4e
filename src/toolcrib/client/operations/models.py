"""The operations on models.

Written by `python -m tools.rest_client`.
"""

from collections.abc import AsyncGenerator

from toolcrib.client.answers import ModelPage, ModelProviderList
from toolcrib.client.groups import AsyncApi
from toolcrib.client.transport import ApiRequest, given
from toolcrib.contracts.specs.model_listing import ModelInfo


class AsyncModelsApi(AsyncApi):
    """The operations on models."""

    async def list_known(
        self,
        *,
        provider: str | None = None,
        q: str | None = None,
        usable: bool | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> ModelPage:
        """Models by reference, page by page, as far as the price data or the application names them."""
        return await self._transport.send(
            ModelPage,
            ApiRequest(
                method="GET",
                path="/api/v1/ai/models",
                query=given(provider=provider, q=q, usable=usable, after=after, limit=limit),
            ),
        )

    def each_known(
        self, *, provider: str | None = None, q: str | None = None, usable: bool | None = None, limit: int | None = None
    ) -> AsyncGenerator[ModelInfo]:
        """Models by reference, page by page, as far as the price data or the application names them.

        All of them: the next page is read when it is needed.
        """
        return self._transport.each(
            ModelPage,
            ApiRequest(
                method="GET", path="/api/v1/ai/models", query=given(provider=provider, q=q, usable=usable, limit=limit)
            ),
            "after",
        )

    async def list_providers(self) -> ModelProviderList:
        """Providers of models: their wires and addresses, and whether their keys are set."""
        return await self._transport.send(
            ModelProviderList, ApiRequest(method="GET", path="/api/v1/ai/models/providers")
        )

    async def get_known(self, reference: str) -> ModelInfo:
        """One model by its reference, `provider:model`, also one that no list has."""
        return await self._transport.send(
            ModelInfo, ApiRequest(method="GET", path="/api/v1/ai/models/{reference}", place={"reference": reference})
        )
