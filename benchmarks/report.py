"""The benchmark's result as Markdown: a table of the loops, one of the imports, and the bars with what was measured.

A ratio between two candidates is the median, over the rounds, of the ratio inside one round. A busy neighbour makes CPU
time itself dearer, by half or more, for as long as it lasts; inside a round it does so to both sides.
"""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from benchmarks.imports import OURS, OURS_USED, PYDANTIC, PYDANTIC_USED, ImportCost
from benchmarks.measure import Figures

RAW, MEMORY, SQLITE = "raw", "toolcrib-memory", "toolcrib-sqlite"


@dataclass(slots=True)
class Row:
    """What is known of one candidate after the rounds."""

    name: str
    peer: bool
    rounds: list[Figures] = field(default_factory=list[Figures])
    burst: Figures | None = None
    burst_requests_per_run: float | None = None
    """Model calls that the provider answered per run of the burst; more than the script's three means retries."""
    crashed: str | None = None

    @property
    def least(self) -> float | None:
        """Least CPU milliseconds per run of all rounds."""
        return min((figures.cpu_ms_per_run for figures in self.rounds), default=None)

    @property
    def median(self) -> float | None:
        """Median CPU milliseconds per run of all rounds."""
        return statistics.median(figures.cpu_ms_per_run for figures in self.rounds) if self.rounds else None


@dataclass(frozen=True, slots=True)
class Bar:
    """One promise, what was measured, and whether it was kept; `None` where nothing was measured."""

    promise: str
    measured: str
    met: bool | None


def ratio(value: float | None, reference: float | None) -> float | None:
    """Value in units of the reference, where both are known."""
    return None if value is None or not reference else value / reference


def relative(row: Row | None, reference: Row | None) -> float | None:
    """CPU per run of a candidate in units of the reference: the median of the rounds' own ratios."""
    if row is None or reference is None or not row.rounds or not reference.rounds:
        return None
    pairs = zip(row.rounds, reference.rounds, strict=False)  # a candidate that crashed late has fewer rounds
    return statistics.median(mine.cpu_ms_per_run / theirs.cpu_ms_per_run for mine, theirs in pairs)


def best_peer(rows: Iterable[Row]) -> Row | None:
    """The peer with the least median CPU per run."""
    measured = [row for row in rows if row.peer and row.rounds]
    return min(measured, key=lambda row: row.median or 0.0, default=None)


def at_most(promise: str, value: float | None, limit: float) -> Bar:
    """A ratio that must not exceed its limit."""
    return Bar(promise, shown(value, "{:.2f}x"), None if value is None else value <= limit)


def at_least(promise: str, value: float | None, limit: float) -> Bar:
    """A ratio that must reach its limit."""
    return Bar(promise, shown(value, "{:.1f}x"), None if value is None else value >= limit)


def judge(rows: Sequence[Row], burst_runs: int, imports: Sequence[ImportCost]) -> list[Bar]:
    """Hold the figures against the bars of the project; `burst_runs` is how many runs the burst started at once."""
    named = {row.name: row for row in rows}
    raw, memory, sqlite, peer = named.get(RAW), named.get(MEMORY), named.get(SQLITE), best_peer(rows)
    cost = {item.statement: item.least_ms for item in imports}
    imported = ratio(cost[OURS], cost[PYDANTIC]) if cost[OURS_USED] else None  # without its names, it proves nothing
    return [
        at_most("memory journal <= 2x raw", relative(memory, raw), 2),
        at_least("memory journal 8x less than best peer", relative(peer, memory), 8),
        at_most("SQLite <= 4x raw", relative(sqlite, raw), 4),
        at_least("SQLite 4x less than best peer", relative(peer, sqlite), 4),
        judge_bursts([row for row in (memory, sqlite) if row], burst_runs),
        at_most("import toolcrib <= 1.3x import pydantic", imported, 1.3),
        at_most("Crib and tool <= 2x BaseModel", ratio(cost[OURS_USED], cost[PYDANTIC_USED]), 2),
    ]


def judge_bursts(ours: Sequence[Row], burst_runs: int) -> Bar:
    """No run of ours may fail when hundreds of them are in flight."""
    bursts = {row.name: row.burst.failures for row in ours if row.burst}
    measured = ", ".join(f"{name}: {failures}" for name, failures in bursts.items())
    return Bar(f"{burst_runs} concurrent, 0 failures", measured or "-", not any(bursts.values()) if bursts else None)


def shown(value: float | None, pattern: str) -> str:
    """A figure in its column's format, or a dash."""
    return "-" if value is None else pattern.format(value)


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, ["---"] * len(header), *lines])


def loop_table(rows: Sequence[Row]) -> str:
    """CPU, ratios and the burst of every candidate that was measured, and a reason for each that was not."""
    raw = next((row for row in rows if row.name == RAW), None)
    best = best_peer(rows)
    header = [
        "candidate",
        "CPU ms / run, min",
        "median",
        "vs raw",
        "vs best peer",
        "burst: failed",
        "burst: CPU ms / run",
        "burst: requests / run",
        "burst: peak RSS MB",
        "burst: RSS growth MB",
    ]
    lines = [loop_line(row, raw, best) for row in rows]
    reasons = [f"- {row.name}: {row.crashed}" for row in rows if row.crashed]
    return "\n".join([table(header, lines), *([""] if reasons else []), *reasons])


def loop_line(row: Row, raw: Row | None, best: Row | None) -> list[str]:
    """The cells of one candidate."""
    burst = row.burst
    if row.crashed:
        return [row.name, "crashed", *["-"] * 8]
    return [
        row.name,
        shown(row.least, "{:.2f}"),
        shown(row.median, "{:.2f}"),
        shown(relative(row, raw), "{:.2f}x"),
        shown(relative(row, best), "{:.3f}x"),
        shown(burst and burst.failures, "{}"),
        shown(burst and burst.cpu_ms_per_run, "{:.2f}"),
        shown(row.burst_requests_per_run, "{:.2f}"),
        shown(burst and burst.peak_rss_mb, "{:.0f}"),
        shown(burst and burst.rss_growth_mb, "{:.0f}"),
    ]


def import_table(imports: Sequence[ImportCost]) -> str:
    """CPU of each import statement."""
    lines = [
        [f"`{item.statement}`", shown(item.least_ms, "{:.1f}"), shown(item.median_ms, "{:.1f}")] for item in imports
    ]
    return table(["statement", "CPU ms, min", "median"], lines)


def bar_table(bars: Sequence[Bar]) -> str:
    """The bars, each met, missed or not measured."""
    words = {True: "met", False: "missed", None: "not measured"}
    return table(["bar", "measured", ""], [[bar.promise, bar.measured, words[bar.met]] for bar in bars])
