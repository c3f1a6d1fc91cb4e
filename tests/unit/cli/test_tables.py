"""Tables: whole cells at 80 columns and in pipes. Ids: by prefix, and the latest."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.cli.command import toolcrib
from tests.unit.cli.test_commands import carry_on, waiting_run
from toolcrib.interfaces.cli.render.rows import lay_out, print_rows

RUN = "run_01a204af77f4148c1a3112e43e22f0b1"
TITLES = ("Run", "Tool", "Status", "Stop reason", "Started (UTC)", "Cost")
CELLS = (RUN, "update_deals_of_a_company", "awaiting_approval", "approval_required", "2026-11-22 10:00:00", "$0.004")


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'crib.db'}"


@pytest.mark.requirement("cli.whole_cells")
def test_a_row_that_does_not_fit_goes_on_below_and_no_cell_is_cut() -> None:
    title, row = lay_out(TITLES, [CELLS], 80)

    assert all(len(line) <= 80 for text in (title, row) for line in text.splitlines())
    assert all(cell in row for cell in CELLS)
    assert [line.startswith("    ") for line in row.splitlines()] == [False, True, True][: len(row.splitlines())]


@pytest.mark.requirement("cli.whole_cells")
@given(
    st.integers(20, 200),
    st.lists(st.text("abc äé", min_size=1).filter(str.strip), min_size=1, max_size=6),
)
def test_every_cell_is_whole_at_every_width(width: int, cells: list[str]) -> None:
    cells = [" ".join(cell.split()) for cell in cells]
    _, row = lay_out(["t"] * len(cells), [cells], width)

    position = 0
    for cell in cells:
        position = row.index(cell, position) + len(cell)


@pytest.mark.requirement("cli.whole_cells")
def test_a_description_gives_way_to_keep_a_row_on_one_line() -> None:
    title, row = lay_out(("Name", "Description"), [("deals", "d" * 200)], 80, gives_way=True)

    assert (title, len(row), row.endswith("…")) == ("Name   Description", 80, True)


@pytest.mark.requirement("cli.whole_cells")
def test_a_pipe_gets_tabs_and_whole_cells_without_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(("A", "B"), [("x" * 300, "two\nlines\x1b[31m")], gives_way=True)

    assert capsys.readouterr().out == f"A\tB\n{'x' * 300}\ttwo lines\N{REPLACEMENT CHARACTER}[31m\n"


@pytest.mark.requirement("cli.ids")
def test_a_run_is_found_by_a_prefix_and_as_the_latest(store: str) -> None:
    run_id = waiting_run(store)
    [approval] = json.loads(toolcrib("approval", "list", "--json", store=store).stdout)

    for text in (run_id, run_id[:12], "latest"):
        assert json.loads(toolcrib("run", "trace", text, "--json", store=store).stdout)["run_id"] == run_id
    listed = json.loads(toolcrib("approval", "list", "--run", run_id[:12], "--json", store=store).stdout)
    assert listed == [approval]
    done = toolcrib("approval", "approve", approval["approval_id"][:12], store=store)
    assert done.stdout.startswith(f"approved {approval['approval_id']};")
    carry_on(store, run_id)
    assert "cannot be cancelled any more" in toolcrib("run", "cancel", "latest", store=store).stderr


@pytest.mark.requirement("cli.ids")
def test_a_prefix_that_a_slip_could_be_means_nothing(store: str) -> None:
    run_id = waiting_run(store)

    refused = toolcrib("run", "cancel", run_id[:7], store=store)
    assert refused.exit_code == 1
    assert f"'{run_id[:7]}' is too short to mean run {run_id}; give at least 8 characters" in refused.stderr


@pytest.mark.requirement("cli.ids")
def test_a_prefix_of_several_ids_is_refused_with_those_that_it_may_mean(store: str) -> None:
    ids = sorted((waiting_run(store), waiting_run(store)))

    refused = toolcrib("run", "trace", "run_", store=store)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert f"several run ids begin with 'run_': {', '.join(ids)}; give more characters" in refused.stderr


@pytest.mark.requirement("cli.ids")
@pytest.mark.parametrize("command", [("run", "trace"), ("instance", "show"), ("conversation", "show")])
def test_there_is_no_latest_where_there_is_none(command: tuple[str, str], store: str) -> None:
    toolcrib("tool", "add", "wget", store=store)

    refused = toolcrib(*command, "latest", store=store)
    assert (refused.exit_code, "yet, so none is the latest" in refused.stderr) == (1, True)
    assert toolcrib(*command, "nothing", store=store).exit_code == 1
