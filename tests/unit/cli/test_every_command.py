"""Every command is run with `--json` on a store in a file, and what it prints is valid against its JSON Schema.

The commands are run one after another, as in a session. One that is missing here fails the test.
"""

import json
import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from tests.twins import MASTER_KEYS
from tests.unit.cli.command import invalid
from tests.unit.cli.test_agents import speaking
from tests.unit.cli.test_program import PROGRAM
from tests.unit.cli.walk_world import prepare
from tests.unit.mcp_client.test_programs import command
from toolcrib.interfaces.cli.app import app
from toolcrib.interfaces.cli.render.outputs import OUTPUTS, PROTOCOLS
from toolcrib.llm import local
from tools.docs import commands

pytestmark = pytest.mark.requirement("cli.output", "cli.json_schema")

SESSION: Final = """
    settings
    doctor
    completion bash
    schema Run
    schema cli
    restate config
    store show
    store migrate
    init project
    key add --principal ci --days 1
    key list
    key show KEY
    key remove KEY
    secret new-key k2
    secret set CRM_TOKEN < swordfish
    secret list
    secret rotate
    secret remove CRM_TOKEN
    fragment set tone tone.md
    fragment list
    fragment show tone
    fragment remove tone
    account set billing --grant ai://tools/crm/*
    account list
    account show billing
    account remove billing
    condition add is-won.yaml
    condition list
    condition show is_won
    condition remove is_won
    handler add find.yaml
    handler list
    handler show deals.find
    handler remove deals.find
    mcp set crm --tool crm.* --exclude tag:old --offer search --title CRM
    mcp add crm-server.yaml
    mcp list
    mcp install claude-code --project --server crm --yes
    mcp show crm
    mcp remove crm
    account set robot --grant ai://tools/*
    trigger add nightly.yaml
    trigger list
    trigger show nightly
    trigger state nightly
    trigger pause nightly
    trigger resume nightly
    trigger fire nightly
    trigger remove nightly
    account remove robot
    model providers
    model find claude-sonnet
    reference list
    reference sync
    reference show crm deal_stages
    provider add provider.yaml
    provider list
    provider show crm
    provider test crm -> 1
    provider connections
    provider impact crm
    provider usage
    tool add quote.yaml wget
    tool list
    tool search quote a price
    tool show quote
    tool add-code total.py --name total
    tool call total
    tool call total --dry-run
    tool export quote --as openai
    tool export
    tool deprecate quote --message Old
    tool block quote
    tool activate quote
    tool impact quote
    tool import crm.yaml --name crm
    tool review crm_update_deal
    tool reject crm_update_deal
    tool import crm-3.yaml --name crm
    tool accept crm_update_deal
    tool import-graphql https://shop.example/graphql --name graph --schema api.graphql
    tool import-database ${env:TOOLCRIB_SECRET_SHOP_URL} --name shop
    tool import-mcp MCP --name files
    provider sync files
    provider schedule files --every 6h
    provider state files
    provider discover files
    tool prompt deals
    tool regenerate deals --description
    tool revisions deals
    tool revisions deals --compare 1 1
    tool render-prompt deals "Move a deal"
    tool access deals
    tool test-prompt deals "Move a deal" -> 1
    tool revert deals 1
    tool remove quote --yes
    provider remove crm --yes
    agent add speaker.yaml
    agent list
    agent show speaker
    agent tools speaker
    agent run speaker hi
    agent run speaker and? --conversation latest --file total.py
    conversation list
    conversation show latest
    conversation remove latest
    agent remove speaker
    workflow check sums.yaml
    draft add sums.yaml --note Look
    draft list
    draft show sums
    draft undo sums
    draft add sums.yaml
    draft remove sums
    workflow publish sums.yaml --yes
    workflow list
    workflow show sums
    workflow graph sums
    workflow export sums
    workflow impact sums
    workflow run follow-up --input '{"company": "Acme", "days": 3}'
    workflow run follow-up --dry-run --input '{"company": "Acme", "days": 3}'
    workflow revert sums 1
    workflow remove sums
    approval list
    approval show APR_APPROVED
    approval approve APR_APPROVED --as boss
    approval reject APR_REJECTED --as boss
    approval settle UNSURE --happened --output '{"sent": "yes"}'
    instance list
    instance show SIGNALLED
    instance signal SIGNALLED paid
    instance signal APPROVED paid
    instance resume APPROVED
    instance rerun INSTANCE --from report
    instance cancel CANCELLED
    run list --limit 3 --filter "status eq 'completed'" --sort created_at
    run show RUN
    run show ASKS
    run trace RUN
    run trace SENT --traceback
    run resume SENT -> 1
    run answer ASKS
    run cancel ASKS
    run fork INSTANCE --at 2
    run diff INSTANCE latest
    run replay INSTANCE
    run prompts INSTANCE
    run export INSTANCE -o run.bundle
    replay run.bundle
    run settle SENT PLACE --happened --output '{"sent": "yes"}'
    attachment list CUT
    attachment show CUT DIGEST
    attachment show CUT DIGEST -o deals.json
    eval EVALS --store memory://
    upgrade rehearse -> 1
    export exported
    apply simple --plan --store sqlite:///new.db -> 2
    apply simple --yes --store sqlite:///new.db
    prune --older-than 30d --dry-run
    model list
    model show
    model remove
    demo crm
    demo research
"""
"""Commands in the order in which they are run, with the exit status if it is not 0."""
ELSEWHERE: Final = {
    "agent run --stream": "prints a line for each event",
    "model add": "downloads a model",
    "provider connect": "waits for a browser; test_providers.py",
    "provider disconnect": "needs a connection; test_providers.py",
    "tool import-a2a": "asks an agent; tests/unit/a2a/test_agents_as_tools.py",
    "up": "serves until it is stopped",
    "worker": "works until it is stopped",
    "workflow materialize": "needs a call of an agent in a workflow; test_workflows.py",
}
"""Commands that are not in the session, each with the reason.

The stream, `model add`, `up` and `worker` are validated below, the others in the tests of their own."""
SERVER_LINE: Final = shlex.join(command("plain"))
EVALS: Final = Path(__file__).parents[3] / "examples" / "evals" / "orders.yaml"


def lines() -> Iterator[tuple[int, list[str], str]]:
    """Each line of the session: exit status, words, and stdin."""
    for line in SESSION.strip().splitlines():
        typed, _, status = line.partition(" -> ")
        words, _, stdin = typed.partition(" < ")
        yield int(status or 0), shlex.split(words), stdin


def command_of(words: list[str]) -> str:
    """The command that a line runs."""
    found = commands.find(words)
    assert found is not None, words
    return " ".join(found.words)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    environment = {
        "TOOLCRIB_STORE": f"sqlite:///{tmp_path / 'crib.db'}",
        "TOOLCRIB_MASTER_KEYS": MASTER_KEYS,
        "TOOLCRIB_MODELS_DIR": str(tmp_path / "models"),
        "TOOLCRIB_MCP_COMMANDS": SERVER_LINE,
        "TOOLCRIB_SECRET_MODEL": "key",
        "TOOLCRIB_SECRET_SHOP_URL": f"sqlite:///{tmp_path / 'shop.db'}",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return tmp_path


def test_every_command_prints_json_that_its_schema_describes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with speaking() as url:
        monkeypatch.setenv("TOOLCRIB_EGRESS_ALLOW", url.split("/")[2])
        stand_for = {**prepare(folder, model=url), "EVALS": str(EVALS), "MCP": SERVER_LINE}
        wrong: list[str] = []
        for status, words, stdin in lines():
            typed = [stand_for.get(word, word) for word in words]
            alone = {name: None for name in os.environ if name.startswith("TOOLCRIB_") and words[0] == "demo"}
            done = CliRunner().invoke(app, [*typed, "--json"], input=stdin or None, env=alone)
            name = command_of(words)
            if done.exception is not None and not isinstance(done.exception, SystemExit):
                raise done.exception
            if done.exit_code != status:
                wrong.append(f"{' '.join(words)}: status {done.exit_code}: {done.stderr[:300]}")
                continue
            try:
                document = json.loads(done.stdout)
            except ValueError:
                wrong.append(f"{' '.join(words)}: not JSON: {done.stdout[:300]} {done.stderr[:300]}")
                continue
            wrong += [f"{' '.join(words)}: {problem}" for problem in invalid(name, document)]
            if name == "key add":
                stand_for["KEY"] = document["key"].removeprefix("tcb_")[:12]

    assert wrong == [], "\n".join(wrong)


def test_no_command_is_missing() -> None:
    every = {" ".join(one.words) for one in commands.tree() if not one.is_group}
    run = {command_of(words) for _, words, _ in lines()}

    assert every - run == (ELSEWHERE.keys() | PROTOCOLS.keys()) - {"agent run --stream"}
    assert every == OUTPUTS.keys() | PROTOCOLS.keys()


def test_a_stream_is_one_json_object_per_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with speaking() as url:
        monkeypatch.setenv("TOOLCRIB_EGRESS_ALLOW", url.split("/")[2])
        prepare(folder, model=url)
        CliRunner().invoke(app, ["agent", "add", "speaker.yaml"])
        done = CliRunner().invoke(app, ["agent", "run", "speaker", "hi", "--stream", "--json"])

    *events, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert [invalid("agent run --stream", each) for each in (*events, last)] == [[]] * (len(events) + 1)
    assert last["response"]["response"] == "hello there"
    assert "hello there" in [each.get("text") for each in events]


@pytest.mark.parametrize("words", [("up", "--port", "0"), ("worker",)])
def test_a_process_reports_that_it_is_ready_and_nothing_else(folder: Path, words: tuple[str, ...]) -> None:
    process = subprocess.Popen([PROGRAM, *words, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    ready = json.loads(process.stdout.readline())
    process.send_signal(signal.SIGTERM)
    rest, errors = process.communicate(timeout=60)

    assert ready["event"] == "ready"
    assert rest == ""
    assert invalid(words[0], ready) == []
    if words[0] == "up":
        assert ready["url"].startswith("http://127.0.0.1:")
        assert "The first API key is in" in errors


def test_a_model_that_is_there_is_shown(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def installed(folder: Path) -> list[local.LocalModel]:
        return list(local.MODELS.values())

    monkeypatch.setattr(local, "list_installed", installed)
    document = json.loads(CliRunner().invoke(app, ["model", "add", "--json"]).stdout)

    assert (invalid("model add", document), document["installed"]) == ([], True)


@pytest.mark.requirement("cli.json_errors")
@pytest.mark.parametrize(
    ("words", "code", "status", "step"),
    [
        (("run", "show", "run_none"), "not_found", 1, "toolcrib run list"),
        (("run", "lst"), "usage", 2, "--help"),
        (("run", "show"), "usage", 2, "toolcrib run show --help"),
        (("run", "list", "--limit", "0"), "usage", 2, "toolcrib run list --help"),
        (("tool", "call", "total", "--input", "["), "usage", 2, "toolcrib tool call --help"),
        (("agent", "add", "nowhere.yaml"), "invalid_input", 2, "--help"),
        (("workflow", "publish", "sums.yaml"), "invalid_input", 2, "--help"),
        (("apply", "simple"), "invalid_input", 2, "--help"),
        (("prune",), "invalid_input", 2, "--help"),
        (("settings", "--nothing"), "usage", 2, "--help"),
    ],
)
def test_an_error_is_one_json_object_on_stderr(
    folder: Path, words: tuple[str, ...], code: str, status: int, step: str
) -> None:
    prepare(folder, model="http://127.0.0.1:9/v1")
    done = CliRunner().invoke(app, [*words, "--json"])

    failure = json.loads(done.stderr)
    assert (done.exit_code, done.stdout) == (status, "")
    assert (failure["error"]["code"], failure["error"]["exit_status"]) == (code, status)
    assert step in failure["error"]["next_step"]
    assert invalid("error", failure) == []


def test_a_question_is_never_asked_with_json(folder: Path) -> None:
    prepare(folder, model="http://127.0.0.1:9/v1")
    refused = CliRunner().invoke(app, ["workflow", "publish", "sums.yaml", "--json"], input="y\n")

    assert "--json never asks; add --yes" in json.loads(refused.stderr)["error"]["message"]


def test_the_problems_of_a_file_are_told_by_line(folder: Path) -> None:
    (folder / "desk.yaml").write_text("name: desk\nllm: {model: 'openai:gpt-4o'}\ncolour: red\n", encoding="utf-8")
    refused = CliRunner().invoke(app, ["agent", "add", "desk.yaml", "--json"])

    [problem] = json.loads(refused.stderr)["error"]["problems"]
    assert (problem["file"], problem["line"], problem["path"]) == ("desk.yaml", 3, "/colour")
