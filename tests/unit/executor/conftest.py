"""Every test of a call is made twice: with plans for ordinary calls, and with the pipeline for all of them."""

import pytest

from toolcrib.core.executor import ExecutionRules


@pytest.fixture(autouse=True, params=["plans", "pipeline"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How ordinary calls are made."""
    if request.param == "pipeline":
        monkeypatch.setattr(ExecutionRules, "uses_plans", False)
