"""What `import toolcrib` offers, and what it must not load. (The order of `__all__` is ruff's rule RUF022.)"""

import importlib
import json
import pkgutil
import subprocess
import sys
from collections import Counter

import pytest

import toolcrib

HEAVY = {
    "aiohttp",
    "alembic",
    "fastapi",
    "genai_prices",
    "jsonschema_rs",
    "obstore",
    "rich",
    "sqlalchemy",
    "typer",
}

PACKAGES = ["toolcrib", *(found.name for found in pkgutil.walk_packages(toolcrib.__path__, "toolcrib.") if found.ispkg)]


@pytest.mark.requirement("repository.public_names")
@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_name_resolves_and_stands_once(name: str):
    package = importlib.import_module(name)
    public: list[str] = getattr(package, "__all__", [])

    assert [each for each, count in Counter(public).items() if count > 1] == []
    assert [each for each in public if not hasattr(package, each)] == []


@pytest.mark.requirement("repository.light_import")
def test_importing_toolcrib_loads_nothing_heavy():
    program = "import json, sys, toolcrib; print(json.dumps(sorted(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert HEAVY & set(json.loads(loaded)) == set()
