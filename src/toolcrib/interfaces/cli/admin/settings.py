"""`toolcrib settings`: what is set, and where."""

import json
import os
from typing import TYPE_CHECKING

from toolcrib.interfaces.cli.support.options import AsJson

if TYPE_CHECKING:
    from toolcrib.contracts import JsonObject
    from toolcrib.crib.settings import LoadedSettings


def show_settings(as_json: AsJson = False) -> None:
    """Print every setting, its value, and where the value comes from; of secrets only whether they are set."""
    from toolcrib.crib.settings import SECRETS, load_settings

    loaded = load_settings()
    secrets = {name: name in os.environ for name in SECRETS}
    if as_json:
        file = None if loaded.file is None else str(loaded.file)
        document = {"settings": _listed(loaded), "secrets": secrets, "file": file}
        print(json.dumps(document, indent=2, ensure_ascii=False))
        return
    from toolcrib.interfaces.cli.render.tables import print_settings

    print_settings(_listed(loaded), secrets)


def _listed(loaded: "LoadedSettings") -> "dict[str, JsonObject]":
    from toolcrib.crib.settings import value_of, variable_of

    return {
        key: {"value": value_of(loaded.settings, key), "origin": origin, "variable": variable_of(key)}
        for key, origin in loaded.origins.items()
    }
