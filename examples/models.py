"""Refuses a model that a demonstration could not ask, before anything is started."""

import os

from toolcrib.contracts import InvalidSettings
from toolcrib.llm import resolve


def check_model(model: str | None, base_url: str | None, *, scripted: str) -> None:
    """Check the reference of a model and that its key is there.

    Args:
        model: `provider:model`; null for the scripted one.
        base_url: Address of the model's server.
        scripted: The demonstration's own model, which needs no key.

    Raises:
        InvalidSettings: The reference is malformed, its provider unknown, or the key is missing.
    """
    if model is None or model == scripted:
        return
    if model.startswith("scripted:"):
        raise InvalidSettings(f"there is no model {model!r}; the scripted one of this demonstration is {scripted!r}")
    endpoint = resolve(model, base_url=base_url)
    if endpoint.key_required and not os.environ.get(endpoint.api_key_env or ""):
        raise InvalidSettings(
            f"model {model!r} needs {endpoint.api_key_env}, which is not set; export it, or leave --model away to use "
            f"{scripted}, which needs none"
        )
