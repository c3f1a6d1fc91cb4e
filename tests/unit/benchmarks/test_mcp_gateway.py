"""The comparison of MCP gateways, with a small load and without the peer."""

import asyncio
from pathlib import Path

import pytest

from benchmarks.mcp_gateway import DIRECT, OURS, THEIRS, Target, compare, report


@pytest.mark.requirement("benchmarks.gateways")
def test_calls_through_the_gateway_are_measured_beside_direct_ones(tmp_path: Path) -> None:
    targets = asyncio.run(compare(tmp_path, rounds=2, calls=4, peers=False))

    assert [target.name for target in targets] == [DIRECT, OURS]
    assert all(len(target.calls_per_s) == len(target.p95_ms) == 2 for target in targets)
    assert "throughput" not in report(targets)


@pytest.mark.requirement("benchmarks.gateways")
def test_the_bars_are_medians_of_the_ratios_of_each_round() -> None:
    targets = [
        Target(DIRECT, "", "", calls_per_s=[100, 100, 100], p95_ms=[1, 1, 1]),
        Target(OURS, "", "", calls_per_s=[60, 50, 10], p95_ms=[3, 4, 100]),
        Target(THEIRS, "", "", calls_per_s=[10, 10, 10], p95_ms=[21, 31, 41]),
    ]

    shown = report(targets)

    assert "throughput: 5.0 times the peer's; bar 5" in shown
    assert "added p95: 0.10 of the peer's; bar 0.33" in shown
