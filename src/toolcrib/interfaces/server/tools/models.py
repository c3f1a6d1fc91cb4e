"""Routes of models: what definitions can name, with prices and abilities. No key is ever shown."""

from typing import Annotated, Final

from fastapi import Query, Request

from toolcrib.contracts.specs.model_listing import ModelInfo, ModelProviderInfo
from toolcrib.interfaces.server.http.caller_rights import CribDep, is_local_provider
from toolcrib.interfaces.server.http.requests import Routes
from toolcrib.interfaces.server.views.base import ListView, PageView

router = Routes(prefix="/ai/models", tags=("models",))

_LOCAL: Final = "it is on a local address; definitions over HTTP may name it only if the operator allows local models"


class ModelProviderList(ListView[ModelProviderInfo]):
    """Providers of models by name."""


class ModelPage(PageView[ModelInfo]):
    """Models by reference."""


@router.get("")
async def list_known_models(
    *,
    request: Request,
    crib: CribDep,
    provider: str | None = None,
    q: str = "",
    usable: bool | None = None,
    after: str = "",
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> ModelPage:
    """Models by reference, page by page, as far as the price data or the application names them."""
    page = await crib.model_catalog.page(provider=provider, text=q, usable=usable, after=after, limit=limit)
    items = tuple(_as_over_http(model, request) for model in page.items)
    return ModelPage(items=items, next=items[-1].reference if page.more else None)


@router.get("/providers")
async def list_model_providers(request: Request, crib: CribDep) -> ModelProviderList:
    """Providers of models: their wires and addresses, and whether their keys are set."""
    found = await crib.model_catalog.providers()
    refused = [each.name for each in found if _is_refused(each.name, request)]
    changed = {"usable": False, "why_not": _LOCAL}
    return ModelProviderList(
        items=tuple(each.model_copy(update=changed) if each.name in refused else each for each in found)
    )


@router.get("/{reference:path}")
async def get_known_model(reference: str, request: Request, crib: CribDep) -> ModelInfo:
    """One model by its reference, `provider:model`, also one that no list has."""
    return _as_over_http(await crib.model_catalog.get(reference), request)


def _as_over_http(model: ModelInfo, request: Request) -> ModelInfo:
    return model.model_copy(update={"usable": False}) if _is_refused(model.provider, request) else model


def _is_refused(provider: str, request: Request) -> bool:
    """Whether definitions over HTTP may not name the provider's models."""
    return not request.app.state.allow_local_models and is_local_provider(provider)
