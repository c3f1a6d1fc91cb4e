"""Times of schedules: in their zone, through changes of the clock, and caught up as the trigger says."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.contracts import CatchUp, CronSource, InvalidDefinition
from toolcrib.core.triggers import check_schedule, due_times, next_time

pytestmark = pytest.mark.requirement("triggers.schedule")

BERLIN = "Europe/Berlin"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def times(source: CronSource, after: datetime, until: datetime) -> list[datetime]:
    """All of a time, one by one."""
    found: list[datetime] = []
    moment = next_time(source, after)
    while moment is not None and moment <= until:
        found.append(moment)
        moment = next_time(source, moment)
    return found


@pytest.mark.parametrize(
    ("day", "cron", "expected"),
    [
        ("2026-03-29", "30 2 * * *", ["03:00:00+02:00"]),
        ("2026-03-29", "0 * * * *", ["01:00:00+01:00", "03:00:00+02:00", "04:00:00+02:00"]),
        ("2026-10-25", "30 2 * * *", ["02:30:00+02:00"]),
        ("2026-10-25", "0 6 * * *", ["06:00:00+01:00"]),
        ("2026-10-25", "*/30 2 * * *", ["02:00:00+02:00", "02:30:00+02:00", "02:00:00+01:00", "02:30:00+01:00"]),
    ],
)
def test_a_change_of_the_clock_loses_no_time_and_repeats_none(day: str, cron: str, expected: list[str]):
    source = CronSource(cron=cron, timezone=BERLIN)
    found = times(source, at(f"{day}T00:30:00+01:00"), at(f"{day}T23:00:00+01:00"))

    assert found[: len(expected)] == [at(f"{day}T{each}") for each in expected]


@pytest.mark.parametrize(
    ("catch_up", "most", "expected"),
    [
        ("none", 100, []),
        ("last", 100, ["2026-05-04T10:45:00+00:00"]),
        ("all", 100, [f"2026-05-04T{hour:02}:45:00+00:00" for hour in (7, 8, 9, 10)]),
        ("all", 2, ["2026-05-04T09:45:00+00:00", "2026-05-04T10:45:00+00:00"]),
    ],
)
def test_what_passed_while_no_server_ran_is_caught_up_as_it_says(catch_up: CatchUp, most: int, expected: list[str]):
    source = CronSource(cron="45 * * * *", catch_up=catch_up, max_catch_up=most)
    found = due_times(source, at("2026-05-04T07:00:00+00:00"), at("2026-05-04T11:20:00+00:00"))

    assert list(found) == [at(each) for each in expected]


def test_a_start_of_some_seconds_late_is_on_time():
    source = CronSource(cron="0 6 * * *", catch_up="none")
    before = at("2026-05-04T05:59:59+00:00")

    assert due_times(source, before, at("2026-05-04T06:00:00+00:00")) == (at("2026-05-04T06:00:00+00:00"),)
    assert due_times(source, before, at("2026-05-04T06:00:59+00:00")) == (at("2026-05-04T06:00:00+00:00"),)
    assert due_times(source, before, at("2026-05-04T06:02:00+00:00")) == ()
    assert due_times(source, before, before) == ()


def test_a_year_without_a_server_costs_no_more_than_a_minute_of_it():
    source = CronSource(cron="* * * * *", catch_up="all", max_catch_up=3)
    now = at("2026-05-04T06:00:30+00:00")

    minutes = [now.replace(second=0) - timedelta(minutes=back) for back in (2, 1, 0)]
    assert due_times(source, now - timedelta(days=3650), now) == tuple(minutes)


@given(
    cron=st.sampled_from(["*/7 * * * *", "30 2 * * *", "0 */5 * * *", "15 1,2,3 * * sun", "0 0 1 * *", "59 23 L * *"]),
    days=st.floats(0, 230),
    minutes=st.integers(1, 60 * 24 * 9),
    most=st.integers(1, 40),
)
def test_the_times_caught_up_are_the_last_of_all_that_passed(cron: str, days: float, minutes: int, most: int):
    after = at("2026-03-20T00:00:00+00:00") + timedelta(days=days)
    now = after + timedelta(minutes=minutes)
    source = CronSource(cron=cron, timezone=BERLIN, catch_up="all", max_catch_up=most)

    assert list(due_times(source, after, now)) == times(source, after, now)[-most:]


@pytest.mark.parametrize(
    ("cron", "zone", "message"),
    [
        ("0 6 * *", "UTC", "cron '0 6 \\* \\*': .*five fields"),
        ("0 25 * * *", "UTC", "cron '0 25 \\* \\* \\*': bad hour"),
        ("0 0 30 2 *", "UTC", "bad day-of-month"),
        ("0 6 * * *", "Berlin", "time zone 'Berlin' is unknown; use a name of the IANA database"),
        ("0 6 * * *", "../etc/passwd", "time zone '../etc/passwd' is unknown"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(cron: str, zone: str, message: str):
    with pytest.raises(InvalidDefinition, match=message):
        check_schedule(CronSource(cron=cron, timezone=zone))
