"""The inbox on the command line, by processes that could not make the calls."""

import json
from pathlib import Path

import pytest

from tests.unit.cli.command import toolcrib
from tests.unit.cli.test_commands import waiting_run
from toolcrib.interfaces.cli.render.tables import print_rows

pytestmark = pytest.mark.requirement("approvals.inbox")


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/crib.db"


def inbox(store: str, *options: str) -> list[dict[str, str]]:
    return json.loads(toolcrib("approval", "list", "--json", *options, store=store).stdout)


def test_a_waiting_call_is_listed_shown_and_approved_with_other_arguments(store: str) -> None:
    run_id = waiting_run(store)
    [found] = inbox(store)
    shown = toolcrib("approval", "show", found["approval_id"], store=store).stdout
    listed = toolcrib("approval", "list", store=store).stdout

    assert found["approval_id"] in listed
    for fact in ("delete@1.0.0", "deals@1.0.0", '{"ids": ["d1"]}', "writes", "waiting", run_id):
        assert fact in shown
    view = json.loads(toolcrib("approval", "show", found["approval_id"], "--json", store=store).stdout)
    assert (view["approval"]["run_id"], view["preview"]["title"]) == (run_id, "delete")

    invalid = toolcrib("approval", "approve", found["approval_id"], "--edit", '{"ids": 7}', store=store)
    assert (invalid.exit_code, "the call still waits" in invalid.stderr) == (2, True)
    done = toolcrib("approval", "approve", found["approval_id"], "--edit", '{"ids": []}', "--reason", "go", store=store)
    assert done.stdout == f"edited {found['approval_id']}; resume the run with: toolcrib run resume {run_id}\n"
    assert inbox(store) == []
    [decided] = inbox(store, "--status", "all")
    assert (decided["status"], decided["reason"], decided["decided_by"]) == ("edited", "go", "owner")


def test_arguments_are_shown_whole_however_long_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = " ".join(f"number-{number}" for number in range(200))

    print_rows(("What", "Value"), [("Arguments", arguments), ("Tool", "pay")])

    shown = capsys.readouterr().out
    assert shown.split()[2:] == ["Arguments", *arguments.split(), "Tool", "pay"]


@pytest.mark.requirement("approvals.self")
def test_who_has_a_part_in_the_run_does_not_decide_under_the_own_name(store: str) -> None:
    waiting_run(store)
    [found] = inbox(store, "--tool", "delete")
    own = toolcrib("approval", "reject", found["approval_id"], "--as", "owner", store=store)
    assert (own.exit_code, "takes part in the run" in own.stderr) == (1, True)
    other = toolcrib("approval", "reject", found["approval_id"], "--as", "ann", "--reason", "no", store=store)
    assert other.stdout.startswith(f"rejected {found['approval_id']}")
    again = toolcrib("approval", "approve", found["approval_id"], store=store)
    assert (again.exit_code, "rejected already, by 'ann'" in again.stderr) == (1, True)
