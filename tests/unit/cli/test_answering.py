"""What a run asks, on the command line."""

import asyncio
from pathlib import Path

import orjson
import pytest

from tests.unit.agents.crm import DONE, MODEL, Crm, read_plan
from tests.unit.cli.command import toolcrib
from toolcrib import Crib, ScriptedModel

pytestmark = pytest.mark.requirement("agents.questions")


async def ask(store: str) -> str:
    """A run that waits for an answer; returns its id."""
    asking = {**read_plan(), "question": {"text": "Which one?", "choices": [{"label": "Both", "outcome": "Two move."}]}}
    async with Crib(store, models={MODEL: ScriptedModel([orjson.dumps(asking).decode()])}) as crib:
        crib.add(*Crm(1).tools)
        crib.agentic_tool("deals", mode="deterministic", model=MODEL, steps=["search_deals", "update_deals"])
        return (await crib.invoke("deals", {"task": "Move Acme's deals to Negotiation"})).run_id


def test_a_question_is_shown_with_its_choices_and_what_would_follow(tmp_path: Path):
    store = f"sqlite:///{tmp_path / 'crib.db'}"
    run_id = asyncio.run(ask(store))

    shown = toolcrib("run", "answer", run_id, "--store", store)

    assert shown.stdout.splitlines() == [
        "Which one?",
        "  Both: Two move.",
        f"answer with: toolcrib run answer {run_id} TEXT",
    ]


def test_an_answer_to_another_question_is_refused_and_names_the_one_that_waits(tmp_path: Path):
    store = f"sqlite:///{tmp_path / 'crib.db'}"
    run_id = asyncio.run(ask(store))

    refused = toolcrib("run", "answer", run_id, "Both", "--position", "plan.q2", "--store", store)

    assert refused.exit_code == 1
    assert "it asks at 'plan.q1': Which one?" in refused.stderr
    assert DONE["summary"] not in refused.stdout
