"""How long a run was worked on: waits and the time after a crash excluded."""

from datetime import timedelta

import pytest

from tests.unit.store.samples import NOON, REQUEST
from toolcrib.contracts import Event, ProgressMade, RunEvent, RunFinished, RunResumed, RunStarted, RunSuspended
from toolcrib.core.runs import History

START = RunStarted(request=REQUEST)
NOTE = ProgressMade(key="k", kind="note")
WAIT = RunSuspended(status="awaiting_client", waiting_for=("go",))
WOKEN = RunResumed(epoch=2, cause="signal")
RECOVERED = RunResumed(epoch=2, cause="crash")
END = RunFinished(status="completed", stop_reason="final_answer")


def active(*events: tuple[float, Event]) -> float:
    entries = [
        RunEvent("r1", number, NOON + timedelta(seconds=at), "default", "owner", event)
        for number, (at, event) in enumerate(events, start=1)
    ]
    return History(entries).active_s


@pytest.mark.requirement("runs.active_time")
@pytest.mark.parametrize(
    ("events", "seconds"),
    [
        ([], 0),
        ([(0, START)], 0),
        ([(0, START), (2, NOTE), (5, END)], 5),
        ([(0, START), (2, WAIT), (90, WOKEN), (93, END)], 5),
        ([(0, START), (2, WAIT), (90, WOKEN), (91, WAIT), (200, WOKEN), (202, END)], 5),
        ([(0, START), (2, NOTE), (90, RECOVERED), (93, END)], 5),
        ([(0, START), (2, WAIT), (90, NOTE), (93, END)], 5),
        ([(0, START), (5, NOTE), (4, NOTE)], 5),
    ],
    ids=["nothing", "started", "worked", "waited", "waited-twice", "crashed", "crashed-when-woken", "clock-went-back"],
)
def test_only_time_in_which_a_process_worked_counts(events: list[tuple[float, Event]], seconds: float):
    assert active(*events) == seconds
