"""The real model, where it is installed."""

from pathlib import Path

import pytest

from examples.crm.demo import TASK, demonstrate
from toolcrib.llm.local import find_model, installed, models_folder

MODEL = "qwen2.5-coder-1.5b"


@pytest.mark.soak
@pytest.mark.requirement("local.real")
async def test_the_local_model_changes_the_right_deals_and_only_them(tmp_path: Path) -> None:
    if find_model(MODEL) not in installed(models_folder()):
        pytest.skip("the local model is not installed; `make model` installs it")

    outcome = await demonstrate(TASK, folder=tmp_path, model=f"local:{MODEL}")

    assert outcome.ok
