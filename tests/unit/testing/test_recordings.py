"""Recording real traffic with models, and replaying it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.llm.sdk_server import cloud
from tests.unit.testing.conftest import MODEL
from toolcrib import Crib, ScriptedModel
from toolcrib.contracts import AgentRequest, InvalidInput, LLMConfig
from toolcrib.llm import Done, Request, user
from toolcrib.testing import calls, fails, new_crib, override_models, record_models, says

pytestmark = pytest.mark.requirement("testing.recorded")

KEY = "sk-proj-0123456789abcdefghij"


async def ask(crib: Crib, message: str = "Which deals has Acme?"):
    return await crib.executions.execute("desk", AgentRequest(message=message))


async def record(office: Crib, path: Path, *script: Any, message: str = "Which deals has Acme?", **options: Any):
    with override_models(office, ScriptedModel(script)), record_models(office, path, **options):
        return await ask(office, message)


async def test_a_real_provider_is_recorded_once_and_replayed_without_key_and_network(tmp_path: Path):
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Two deals."}}
    usage = {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010}
    path = tmp_path / "recordings" / "desk.json"
    async with cloud() as provider, Crib("memory://", environment={"OPENAI_API_KEY": KEY}) as crib:
        provider.will({"id": "c1", "model": "gpt-4o", "choices": [choice], "usage": usage})
        local = f"http://127.0.0.1:{provider.port}/v1"
        crib.models.trust(local)
        desk = crib.agent("desk", model=LLMConfig(model="openai:gpt-4o", base_url=local))
        with record_models(crib, path):
            first = await desk("Which deals has Acme?")
        assert first.error is None
        assert KEY in provider.headers["Authorization"]
    async with new_crib() as crib:  # the same address, where nothing listens any more
        crib.models.trust(local)
        desk = crib.agent("desk", model=LLMConfig(model="openai:gpt-4o", base_url=local))
        with record_models(crib, path, mode="none"):
            again = await desk("Which deals has Acme?")

    assert (first.output, again.output) == ("Two deals.", "Two deals.")
    assert (first.usage, first.cost_usd) == (again.usage, again.cost_usd)
    assert KEY not in path.read_text()


async def test_calls_of_a_recorded_agent_are_made_again(office: Crib, tmp_path: Path):
    path = tmp_path / "desk.json"
    await record(office, path, calls("search_deals", company="Acme"), says("One."))
    with record_models(office, path):
        again = await ask(office)

    assert again.response == "One."
    assert again.tool_order != ()


async def test_secrets_are_in_no_file_and_a_replay_still_fits(
    office: Crib, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("CRM_TOKEN", "tok-of-the-crm-123")
    told = f"My key is {KEY}, the CRM has tok-of-the-crm-123, we are at postgres://u:hidden@db and 4711-4711-4711."
    path = tmp_path / "desk.json"
    await record(office, path, says(f"You said {KEY}."), message=told, secrets=["4711-4711-4711"])
    text = path.read_text()
    with record_models(office, path, mode="none", secrets=["4711-4711-4711"]):
        again = await ask(office, told)

    assert [secret for secret in (KEY, "tok-of-the-crm-123", "hidden", "4711-4711") if secret in text] == []
    assert "postgres://[secret]@db" in text
    assert again.response == "You said [secret]."


async def test_a_model_that_only_its_recording_knows_is_replayed(tmp_path: Path):
    path, reference = tmp_path / "desk.json", "scripted:desk"
    for models in ({reference: ScriptedModel([says("One.")])}, None):
        async with new_crib(models=models) as crib:
            crib.agent("desk", model=reference)
            with record_models(crib, path):
                answer = await ask(crib)
        assert (answer.response, answer.cost_usd) == ("One.", 0)


async def test_failures_are_replayed_with_their_kind(office: Crib, tmp_path: Path):
    path = tmp_path / "desk.json"
    await record(office, path, fails("rate_limit", "slow down", status=429), says("One."))
    with record_models(office, path) as same:
        again = await ask(office)

    assert (again.response, same) == ("One.", path)
    assert [sorted(each)[0] for each in json.loads(path.read_text())["exchanges"]] == ["error", "hash"]


async def test_streams_and_whole_answers_are_recorded_alike(office: Crib, tmp_path: Path):
    request, path = Request(messages=(user("Hello"),)), tmp_path / "both.json"
    for mode in ("once", "none"):
        with override_models(office, ScriptedModel([says("A b"), says("C")])), record_models(office, path, mode=mode):
            model = office.models.model(LLMConfig(model=MODEL))
            streamed = [event async for event in model.stream(request)]
            whole = await model.request(request)
        assert isinstance(streamed[-1], Done)
        assert (streamed[-1].response.message, whole.message) == (says("A b"), says("C"))


async def test_a_request_that_was_not_recorded_shows_what_differs(office: Crib, tmp_path: Path):
    path = tmp_path / "desk.json"
    await record(office, path, says("One."))
    with record_models(office, path):
        other = await ask(office, "Which deals has Bolt?")
        first = await ask(office)
        second = await ask(office)

    assert other.error is not None
    assert second.error is not None
    assert "has no answer to this request; delete it and record it again" in other.error.message
    assert '-    "text": "Which deals has Acme?"' in other.error.message
    assert '+    "text": "Which deals has Bolt?"' in other.error.message
    assert first.response == "One."
    assert "It has 1 exchanges, and all of them were used" in second.error.message


async def test_all_records_again_and_a_failed_block_leaves_the_file(office: Crib, tmp_path: Path):
    path = tmp_path / "desk.json"
    await record(office, path, says("One."))
    await record(office, path, says("Two."), mode="all")
    with record_models(office, path):
        again = await ask(office)

    def stop() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), record_models(office, path, mode="all"):
        stop()

    assert again.response == "Two."
    assert "Two." in path.read_text()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "there is no recording .*; record it with mode='once', a key and network"),
        ("{", "is not JSON: .*; delete it and record it again"),
        ("[]", "has version None, not 1; delete it"),
        ('{"version": 2}', "has version 2, not 1; delete it"),
    ],
)
async def test_a_file_that_is_no_recording_is_refused(office: Crib, tmp_path: Path, content: str | None, told: str):
    path = tmp_path / "desk.json"
    if content is not None:
        path.write_text(content)

    with pytest.raises(InvalidInput, match=told), record_models(office, path, mode="none"):
        pass


async def test_a_mode_that_does_not_exist_is_refused(office: Crib, tmp_path: Path):
    with (
        pytest.raises(InvalidInput, match="'often' is not a record mode; use one of once, none, all"),
        record_models(office, tmp_path / "a.json", mode="often"),  # pyright: ignore[reportArgumentType]
    ):
        pass
