"""Instructions and CPU in units of the bare loop."""

import shutil
import sys

import pytest

from benchmarks import ratios
from benchmarks.ratios import BARE, CALL, Row, cpu_of_turns, report

pytestmark = pytest.mark.requirement("benchmarks.instructions")


def test_each_candidate_is_shown_in_units_of_the_bare_loop():
    shown = report([Row(BARE, [0.5, 1.0], 2e6), Row("memory", [2.0, 2.0], 5e6)])

    assert shown.splitlines()[-2:] == [
        "| bare loop | 2.000 M | 1.00x | 500 | 1.00x | 1.00x |",
        "| memory | 5.000 M | 2.50x | 2000 | 4.00x | 3.00x |",
    ]
    assert report([Row(BARE, [0.5], None)]).splitlines()[-1] == "| bare loop | - | - | 500 | 1.00x | 1.00x |"


@pytest.mark.slow
def test_a_turn_is_taken_by_a_process_that_stays_alive_and_one_that_fails_is_told():
    assert [len(turns) for turns in cpu_of_turns([CALL], "", rounds=2, runs=5).values()] == [2]
    with pytest.raises(SystemExit, match="memory: the process has failed; see above"):
        cpu_of_turns(["memory"], "http://127.0.0.1:9/v1", rounds=1, runs=1)


def test_without_valgrind_the_next_step_is_told_and_cpu_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def turns(names: list[str], *_: object) -> dict[str, list[float]]:
        return {name: [1.0] for name in names}

    monkeypatch.setattr(ratios, "cpu_of_turns", turns)
    monkeypatch.setattr(shutil, "which", dict[str, str]().get)
    monkeypatch.setattr(sys, "argv", ["ratios"])
    ratios.main()

    said = capsys.readouterr().out
    assert "instructions are not counted: valgrind is not installed; run: make deps-bench" in said
    assert "| executor call | - | - | 1000 | 1.00x | 1.00x |" in said
