"""Imports every module of the installed package, and prints which could not be, as one JSON document."""

import importlib
import json
import pkgutil

import toolcrib

NOT_LIBRARY = (
    "toolcrib._bundled",  # examples
    "toolcrib.infrastructure.store.migrations",  # loaded by Alembic
    "toolcrib.interfaces.cli.demo.reports",  # needs the examples on the path
    "toolcrib.infrastructure.sandbox.jail_program",  # programs of processes of their own
    "toolcrib.kinds.http.runtime.html_page",
    "toolcrib.testing.pytest_plugin",  # needs pytest
)

failed: dict[str, str] = {}
loaded = 0
for module in pkgutil.walk_packages(toolcrib.__path__, "toolcrib."):
    if module.name.startswith(NOT_LIBRARY):
        continue
    try:
        importlib.import_module(module.name)
        loaded += 1
    except Exception as error:  # noqa: BLE001 - the test names each
        failed[module.name] = repr(error)
print(json.dumps({"loaded": loaded, "failed": failed}))
