"""The real model, where it is installed, and that nothing but the CRM is reached."""

import sys
from pathlib import Path
from typing import Any

import pytest

from examples.crm.demo import TASK, demonstrate
from toolcrib.llm.local import find_model, list_installed, models_folder

MODEL = "qwen2.5-coder-1.5b"


class Reached:
    """The addresses to which this process opens connections, while it listens."""

    def __init__(self) -> None:
        self.listening = True
        self.addresses: set[Any] = set()
        sys.addaudithook(self)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Take note; see `sys.addaudithook`, which knows no removal."""
        if self.listening and event == "socket.connect":
            self.addresses.add(arguments[1])


@pytest.mark.requirement("local.offline")
@pytest.mark.parametrize("model", [None, pytest.param(f"local:{MODEL}", marks=pytest.mark.soak)])
async def test_the_demonstration_changes_the_right_deals_and_reaches_nothing_but_the_crm(
    tmp_path: Path, model: str | None
) -> None:
    if model is not None and find_model(MODEL) not in list_installed(models_folder()):
        pytest.skip("the local model is not installed; `make model` installs it")
    reached = Reached()

    outcome = await demonstrate(TASK, folder=tmp_path, model=model)

    reached.listening = False
    assert outcome.ok
    assert {host for host, _ in reached.addresses} == {"127.0.0.1"}
    assert len(reached.addresses) == 1
