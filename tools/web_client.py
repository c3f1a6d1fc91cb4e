"""Writes `web/src/api/schema.d.ts`: the types of the REST API for TypeScript, from the OpenAPI document.

    python -m tools.web_client             # writes the file

`openapi-typescript` makes them, in the version of `web/package-lock.json`; `web/src/api/client.ts` uses them.
"""

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from tests.node import node_command
from tools.docs.operations import document

WEB: Final = Path(__file__).parents[1] / "web"
TYPES: Final = WEB / "src" / "api" / "schema.d.ts"
_HEAD: Final = "// Written by `python -m tools.web_client`.\n\n"
_PATHS: Final = "/api/v1/", "/health"
"""What the paths of the REST API begin with; other protocols have clients of their own."""


def types() -> str:
    """The content of the file."""
    described = document()
    paths = {path: each for path, each in described["paths"].items() if path.startswith(_PATHS)}
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "openapi.json"), Path(folder, "schema.d.ts")
        source.write_text(json.dumps({**described, "paths": paths}), encoding="utf-8")
        command = node_command("openapi-typescript/bin/cli.js", str(source), "-o", str(target), home=WEB)
        subprocess.run(command, check=True, capture_output=True)
        written = target.read_text(encoding="utf-8")
    return _HEAD + written


if __name__ == "__main__":
    TYPES.write_text(types(), encoding="utf-8")
