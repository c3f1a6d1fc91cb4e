"""LangChain's standard tests on a tool of a crib; `test_langchain_standard.py` runs them where they are installed."""

# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUntypedBaseClass=false
import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

import pytest
from langchain_core.tools import BaseTool
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from tests.unit.adapters.crm import small_crm
from toolcrib.interfaces.adapters import langchain

pytestmark = pytest.mark.requirement("adapters.outward")

LOOP = asyncio.new_event_loop()
threading.Thread(target=LOOP.run_forever, daemon=True).start()


def wait(work: Coroutine[Any, Any, Any]) -> Any:
    """Run something in the loop of the crib."""
    return asyncio.run_coroutine_threadsafe(work, LOOP).result()


OPENED = small_crm()
[FIND] = wait(langchain.load(wait(OPENED.__aenter__()).ann, "find_deals"))


class OfFindDeals:
    """The tool, and how it is called."""

    @property
    def tool_constructor(self) -> BaseTool:
        """The tool itself."""
        return FIND

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        """Arguments."""
        return {"company": "Acme"}


class TestUnit(OfFindDeals, ToolsUnitTests):
    """Without calls."""


class TestIntegration(OfFindDeals, ToolsIntegrationTests):
    """With calls, synchronous and asynchronous."""
