"""Plans as a model writes them: of what a task means, and of each mistake, in the way of the task's system.

A plan begins with a reading of the task. In half of the tasks it speaks labels, in the others the system's own values.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import cache
from typing import Final

from tests.corpus.corpus import TODAY, Condition, Part, Task
from tests.corpus.mistakes import Meaning, Mistake, right_meaning, wrong_meanings
from tests.corpus.records import matching
from tests.corpus.systems import System, system_of
from toolcrib.agents.evidence import calculate_day
from toolcrib.agents.evidence.quantities import as_day, is_written
from toolcrib.contracts import Json, JsonObject

_UNITS: Final = {"day": 400, "week": 60, "month": 30, "quarter": 8, "year": 3}
"""How far a calculation shifts."""
_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def right_plan(task: Task) -> JsonObject:
    """The plan of somebody who has understood the task; of one that cannot be done, a question."""
    if task.unclear:
        steps = system_of(task.system).steps(task.action)
        reading: list[JsonObject] = [{"words": task.text[:300], "use": "request"}]
        asked: JsonObject = {"reading": reading, "reasoning": "", "question": f"What is meant by {task.unclear!r}?"}
        return asked | {step: {"skip": True} for step in steps}
    return plan_of(right_meaning(task))


def wrong_plans(task: Task) -> dict[Mistake, JsonObject]:
    """The plan with each mistake that fits the task; nobody who makes one asks."""
    return {kind: plan_of(meaning) for kind, meaning in wrong_meanings(task).items()}


def is_spoken(task: Task) -> bool:
    """Whether plans of the task have labels where the system has ids."""
    return task.picked(2, "labels") == 0


def plan_of(meaning: Meaning) -> JsonObject:
    """The plan that follows from a meaning."""
    task = meaning.task
    system = system_of(task.system)
    spoken = is_spoken(task)
    search, write = system.steps(task.action)
    found: JsonObject = {"skip": True}
    if task.action != "create":
        found = {"input": system.selecting(meaning.where, spoken=spoken)}
    done: JsonObject = {"skip": True}
    if task.action == "create":
        done = {"input": system.writing("create", meaning.changes, (), spoken=spoken)}
    elif task.action != "read":
        action = "update" if task.action == "unclear" else task.action
        name: Json = _id_of_another(meaning, system) if meaning.invents else "${item.id}"
        each: JsonObject = {} if meaning.invents else {"for_each": _found_list(system, search)}
        done = {**each, "input": system.writing(action, meaning.changes, (name,), spoken=spoken)}
    return {"reading": _reading(meaning, system), "reasoning": "", "question": None, search: found, write: done}


def _found_list(system: System, search: str) -> str:
    """Reference to the list of what a search has found."""
    lists: Mapping[str, str] = {"crm": ".results", "tickets": ".tickets", "orders": ".orders", "calendar": ""}
    return "${" + search + lists[system.name] + "}"


def _id_of_another(meaning: Meaning, system: System) -> Json:
    """The id of a record that is not meant."""
    system.reset()
    meant = {record["id"] for record in matching(meaning.where, list(system.records.values()))}
    others = [name for name in system.records if name not in meant]
    return others[meaning.task.picked(len(others), "invented")]


# Reading --------------------------------------------------------------------------------------------------------------


def _reading(meaning: Meaning, system: System) -> list[JsonObject]:
    """The task from left to right; what has no words of its own is not in it."""
    said = [part for part in meaning.parts if part.words]
    order = _places(meaning.task.text, tuple(dict.fromkeys(part.words for part in said)), meaning.rest)
    entries: list[tuple[int, JsonObject]] = []
    for part in said:
        entries.append((order[part.words][0], _claim(part, meaning.task, system)))
    for number, words in enumerate(meaning.rest):
        use = "request" if number == 0 and words in meaning.task.rest else "none"
        places = order[words]
        entries.append((places[min(meaning.rest[:number].count(words), len(places) - 1)], {"words": words, "use": use}))
    return [entry for _, entry in sorted(entries, key=lambda entry: entry[0])]


def _places(text: str, words: Sequence[str], rest: Sequence[str]) -> dict[str, list[int]]:
    """Where each piece begins; longer ones first, and each at a place of its own where there is one."""
    free = [True] * len(text)
    found: dict[str, list[int]] = {}
    for piece in sorted([*words, *rest], key=len, reverse=True):
        starts = [start for start in range(len(text)) if text.startswith(piece, start)]
        ranked = [(all(free[start : start + len(piece)]), _is_word(text, start, piece), -start) for start in starts]
        best = -max(ranked)[2]
        free[best : best + len(piece)] = [False] * len(piece)
        found.setdefault(piece, []).append(best)
    return {piece: sorted(starts) for piece, starts in found.items()}


def _is_word(text: str, start: int, piece: str) -> bool:
    """Whether a piece is no part of a longer word there; in scripts without spaces nobody can tell."""
    before, after = text[start - 1 : start], text[start + len(piece) : start + len(piece) + 1]
    return not ((before.isalnum() and piece[0].isalnum()) or (after.isalnum() and piece[-1].isalnum()))


def _claim(part: Part, task: Task, system: System) -> JsonObject:
    use = "condition" if isinstance(part, Condition) else "change"
    value: Json = part.value if is_spoken(task) else system.own(part.field, part.value)
    claim: JsonObject = {"words": part.words, "use": use, "value": value}
    day = as_day(part.value)
    if day is not None and not is_written(day, part.words) and (how := shortest_calculation(day)):
        claim["how"] = how
    return claim


# Days -----------------------------------------------------------------------------------------------------------------


def shortest_calculation(day: date) -> str:
    """The shortest calculation that gives a day; empty if it is too far from today."""
    return _calculations().get(day, "")


@cache
def _calculations() -> Mapping[date, str]:
    found: dict[date, str] = {}
    for text in sorted(_texts(), key=lambda text: (len(text), text)):
        day = calculate_day(text, TODAY)
        if day is not None:
            found.setdefault(day, text)
    return found


def _texts() -> Iterator[str]:
    places = ["", *(f", {name}" for name in _DAYS)]
    places += [f", {end} of {unit}" for end in ("start", "end") for unit in ("week", "month", "quarter", "year")]
    shifts = [
        f" {sign} {count} {unit}{'s' if count > 1 else ''}"
        for unit, most in _UNITS.items()
        for count in range(1, most)
        for sign in "+-"
    ]
    for shift in ("", *shifts):
        yield from (f"today{shift}{place}" for place in places)
