"""The CRM's OpenAPI document, hand-written in `openapi.yaml`."""

from pathlib import Path
from typing import Final, cast

import yaml

from examples.crm.values import Json

PATH: Final = Path(__file__).with_name("openapi.yaml")


def load_document(url: str | None = None) -> dict[str, Json]:
    """The document; with `url`, as the server at that address serves it."""
    document = cast("dict[str, Json]", yaml.safe_load(PATH.read_text(encoding="utf-8")))
    if url is not None:
        document["servers"] = [{"url": url}]
    return document
