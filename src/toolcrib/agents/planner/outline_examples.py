"""Tasks in the words of a tool's own fields, with the outlines that they mean: a small model follows examples best."""

from collections.abc import Iterator, Sequence
from typing import Final

from toolcrib.agents.planner.outline import DAY, NUMBER, TEXT, Outline, Place
from toolcrib.contracts import Json, JsonObject

_NAME: Final = "Alder Works"
_TITLE: Final = "Spring offer"
_LESS: Final = "less than"
_FROM: Final = "on or after"
_TO: Final = "on or before"
_BEFORE: Final = "before"


def examples_of(outline: Outline) -> list[tuple[str, JsonObject]]:
    """The examples for some steps: two changes and a question, or two tasks that make something new."""
    told = _Told(outline)
    return list(told.makings() if outline.makes else told.changes())


class _Told:
    """Words for conditions and changes, by the fields that there are."""

    def __init__(self, outline: Outline) -> None:
        fields = outline.conditions
        settable = {one.name: one for one in outline.changes}
        closed = [one for one in fields if len(one.values) > 1]
        texts = [one for one in fields if one.value == TEXT and not one.name.endswith("id")]
        self._text = next((one for one in texts if one.name.endswith("_name")), texts[0] if texts else None)
        self._label = next((one for one in closed if one.name in settable), closed[0] if closed else None)
        self._number = next((one for one in fields if one.value == NUMBER and _LESS in one.comparisons), None)
        self._day = next((one for one in fields if one.value == DAY and {_FROM, _TO} <= one.comparisons.keys()), None)
        self._change = settable.get(self._label.name) if self._label is not None else None
        others = [one for one in outline.changes if one.values and one is not self._change]
        self._other = max(others, key=lambda one: len(one.values), default=None)
        self._settable = outline.changes

    def changes(self) -> Iterator[tuple[str, JsonObject]]:
        """Items that get something, and items that are counted."""
        if self._change is not None:
            target = next(iter(self._change.values))
            under, limit = self._under()
            task = f"Everything{self._of()}{self._with()}{under}: set {_spoken(self._change)} to {target}"
            yield task, _wanted([*self._named(), *self._labelled(), *limit], [(self._change, target)])
        if self._other is not None:
            target = next(iter(self._other.values))
            before, days = self._before()
            task = f"Everything{self._of()}{self._with()}{before} goes to {target}"
            yield task, _wanted([*self._named(), *self._labelled(), *days], [(self._other, target)])
        month, days = self._in_may() if self._day is not None else self._under()
        task = f"How many are there, of everything{self._of()}{self._with()}{month}?"
        yield task, _wanted([*self._named(), *self._labelled(), *days], [])

    def makings(self) -> Iterator[tuple[str, JsonObject]]:
        """New things with their values."""
        number = next((one for one in self._settable if one.value == NUMBER), None)
        needed = [one for one in self._settable if one.required or one is number]
        for form, last in (("Please add one{0}: {1}", False), ("New, with {1}{0}", True)):
            given = [(one, list(one.values)[-last] if one.values else _made_up(one)) for one in needed]
            listed = ", ".join(f"{_spoken(one)} {value}" for one, value in given)
            yield form.format(self._of().replace(" of ", " for "), listed), _wanted(self._named(), given)

    def _of(self) -> str:
        return f" of {_NAME}" if self._text is not None else ""

    def _named(self) -> list[JsonObject]:
        return [] if self._text is None else [_condition(self._text, _NAME, _NAME)]

    def _with(self) -> str:
        return "" if self._label is None else f" with {_spoken(self._label)} {list(self._label.values)[-1]}"

    def _labelled(self) -> list[JsonObject]:
        if self._label is None:
            return []
        return [_condition(self._label, self._with().strip(), list(self._label.values)[-1])]

    def _under(self) -> tuple[str, list[JsonObject]]:
        return ("", []) if self._number is None else (" under 2k", [_condition(self._number, "under 2k", 2000, _LESS)])

    def _before(self) -> tuple[str, list[JsonObject]]:
        if self._day is None or _BEFORE not in self._day.comparisons:
            return "", []
        words = f"{_spoken(self._day)} before 2026-05-01"
        return f", {words},", [_condition(self._day, words, "2026-05-01", _BEFORE)]

    def _in_may(self) -> tuple[str, list[JsonObject]]:
        if self._day is None:
            return "", []
        words = f"{_spoken(self._day)} in May 2026"
        ends = ((_FROM, "2026-05-01"), (_TO, "2026-05-31"))
        return f", {words}", [_condition(self._day, words, day, comparison) for comparison, day in ends]


def _made_up(place: Place) -> Json:
    return 2000 if place.value == NUMBER else "2026-05-01" if place.value == DAY else _TITLE


def _condition(place: Place, words: str, value: Json, comparison: str = "is") -> JsonObject:
    compared = {"comparison": comparison} if place.comparisons else {}
    return {"words": words, "field": place.name, **compared, "value": value}


def _wanted(conditions: Sequence[JsonObject], changes: Sequence[tuple[Place, Json]]) -> JsonObject:
    said = [{"words": str(value), "field": place.name, "value": value} for place, value in changes]
    outline: JsonObject = {"wants": "change" if said else "answer", "conditions": list(conditions)}
    return {**outline, "changes": said} if said else outline


def _spoken(place: Place) -> str:
    return place.name.removesuffix("_id").replace("_", " ")
