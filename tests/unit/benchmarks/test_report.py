"""The report: ratios inside rounds, bars, tables."""

import pytest

from benchmarks.imports import OURS, OURS_USED, PYDANTIC, PYDANTIC_USED, ImportCost
from benchmarks.measure import Figures
from benchmarks.report import MEMORY, RAW, SQLITE, Row, bar_table, best_peer, judge, loop_table, relative

IMPORTS = [
    ImportCost(OURS, 120.0, 125.0),
    ImportCost(OURS_USED, 150.0, 155.0),
    ImportCost(PYDANTIC, 100.0, 110.0),
    ImportCost(PYDANTIC_USED, 70.0, 75.0),
]


def figures(cpu_ms: float, *, failures: int = 0) -> Figures:
    return Figures(cpu_ms, 200, failures, "TimeoutError()" if failures else None, peak_rss_mb=90, rss_growth_mb=5)


def row(name: str, *cpu_ms: float, peer: bool = False, failed: int = 0) -> Row:
    return Row(name, peer, [figures(each) for each in cpu_ms], burst=figures(9.0, failures=failed))


def verdicts(*rows: Row) -> list[bool | None]:
    return [bar.met for bar in judge(rows, 500, IMPORTS)]


@pytest.mark.requirement("benchmarks.ratios")
def test_a_ratio_is_the_median_of_the_rounds_and_not_a_ratio_of_medians():
    raw = row(RAW, 1.0, 2.0, 1.0)

    assert relative(row(MEMORY, 2.0, 4.0, 9.0), raw) == 2.0
    assert relative(row(MEMORY, 3.0), raw) == 3.0
    assert relative(Row(MEMORY, peer=False), raw) is None
    assert relative(None, raw) is None


@pytest.mark.requirement("benchmarks.ratios")
def test_the_best_peer_is_the_one_with_the_least_median():
    unsteady, steady = row("unsteady", 1.0, 50.0, 60.0, peer=True), row("steady", 20.0, 20.0, 21.0, peer=True)

    assert best_peer([row(RAW, 1.0), unsteady, steady, Row("crashed", peer=True)]) is steady
    assert best_peer([row(RAW, 1.0)]) is None


@pytest.mark.requirement("benchmarks.bars")
def test_each_bar_is_met_or_missed_by_its_own_ratio():
    raw, peer = row(RAW, 1.0), row("peer", 24.0, peer=True)

    assert verdicts(raw, row(MEMORY, 2.0), row(SQLITE, 4.0), peer) == [True, True, True, True, True, True, False]
    assert verdicts(raw, row(MEMORY, 3.0), row(SQLITE, 6.0), peer) == [False, True, False, True, True, True, False]
    assert verdicts(raw, row(MEMORY, 3.1), row(SQLITE, 6.1), peer) == [False, False, False, False, True, True, False]


@pytest.mark.requirement("benchmarks.bars")
def test_what_was_not_measured_is_neither_met_nor_missed():
    bare = [ImportCost(OURS_USED, None, None) if each.statement == OURS_USED else each for each in IMPORTS]

    assert [bar.met for bar in judge([row(RAW, 1.0)], 500, bare)] == [None] * 7


@pytest.mark.requirement("benchmarks.bars")
def test_one_failure_in_a_burst_misses_the_bar():
    bar = judge([row(MEMORY, 2.0), row(SQLITE, 4.0, failed=1)], 500, IMPORTS)[4]

    assert (bar.promise, bar.measured, bar.met) == (
        "500 concurrent, 0 failures",
        "toolcrib-memory: 0, toolcrib-sqlite: 1",
        False,
    )


@pytest.mark.requirement("benchmarks.report")
def test_the_tables_show_every_candidate_and_every_bar():
    crashed = Row("peer", peer=True, crashed="no module named peer")
    rows = [row(RAW, 1.0), row(MEMORY, 2.5), crashed]

    shown = loop_table(rows).splitlines()
    assert shown[3].startswith("| toolcrib-memory | 2.50 | 2.50 | 2.50x | - | 0 |")
    assert shown[4].startswith("| peer | crashed | - |")
    assert shown[-1] == "- peer: no module named peer"
    assert bar_table(judge(rows, 500, IMPORTS)).splitlines()[2:4] == [
        "| memory journal <= 2x raw | 2.50x | missed |",
        "| memory journal 8x less than best peer | - | not measured |",
    ]
