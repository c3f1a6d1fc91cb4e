"""Decides where each value of a plan or a call comes from, and which words of the task no value uses.

No word lists are used. A value is evident if the words quoted for it contain it, and the task or the author's
documentation contains the words; or if it is a step's result, a default, or a comparison named by a tool's schema.
Other values need a second reading or a person. An id must always come from the task, reference data or a result.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Final, Literal, TypeAlias, cast

from toolcrib.agents.evidence.planned_values import Leaf, Lists, Path, Step, is_reference, leaves_of
from toolcrib.agents.evidence.quantities import (
    as_day,
    as_number,
    calculate_day,
    is_written,
    may_be_more,
    number_spans,
    numbers_in,
)
from toolcrib.agents.evidence.task_parts import TaskPart
from toolcrib.agents.evidence.word_matching import Meaning, Passage, label_of, matches, meaning_of, words_of
from toolcrib.contracts import Json, JsonObject
from toolcrib.core.providers import ReferenceList
from toolcrib.core.registry import LABELS

Role: TypeAlias = Literal["condition", "change"]
Source: TypeAlias = Literal["task", "documentation", "answer", "second reading", "none"]
State: TypeAlias = Literal["evident", "unsure", "unsaid", "ambiguous", "invented"]
"""evident: stands in its words. unsure: words are quoted, and the value does not stand in them. unsaid: no words are.
ambiguous: its words name others as well. invented: names a record that nobody has named."""

_UNIT: Final = 4
"""Letters beside a number in a claimed value: a currency, or a prefix."""
_LONG: Final = 20
"""Letters of a part that is said to mean nothing, from which on somebody is asked about it."""
_FEWEST: Final = 3
"""Letters of a word that a careless quotation is known by."""
_MIDNIGHT: Final = frozenset({"", "00:00", "00:00:00", "23:59", "23:59:59"})


@dataclass(frozen=True, slots=True)
class EvidenceSources:
    """What the values of a plan may come from: the task, and what else counts."""

    task: Passage
    documentation: Passage
    today: date
    lists: Lists = field(default_factory=dict[str, ReferenceList])
    known: frozenset[str] = frozenset()
    """Words by which tools and fields are called: they need no claim."""
    names: frozenset[str] = frozenset()
    """What valid values are called."""
    own: int | None = None
    """Words of the task itself; what follows them are answers, of which no word need be carried. Null for all."""
    by_form: bool = False
    """Nobody has said what the words are for: only those are missed that decide by their form, such as names."""
    restricting: frozenset[str] = frozenset()
    """Folded words of which somebody has said that they restrict which items are meant."""
    fields: frozenset[str] = frozenset()
    """Names of the fields that go into the tools and come out of them: a value that is one chooses what is shown."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Where one value of a plan comes from."""

    step: str
    leaf: Leaf
    role: Role
    shown: str
    """What people call the value."""
    state: State
    source: Source = "none"
    words: str = ""
    places: frozenset[int] = frozenset()
    """Of the words, in the task."""
    why: str = ""
    others: tuple[str, ...] = ()
    """What the words may mean as well, or what else the value may be."""

    @property
    def field(self) -> str:
        """The field that it is a value of."""
        return self.leaf.name

    @property
    def choices(self) -> tuple[str, ...]:
        """What all values of the field are called, if they are known."""
        return _names(self.leaf)

    @property
    def place(self) -> Path:
        """Where it stands in the step's input."""
        return self.leaf.path


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is known of a plan."""

    findings: tuple[Finding, ...]
    left: tuple[str, ...]
    """Words of the task that no value carries, and that nobody has said to mean nothing; or that tell otherwise."""
    idle: tuple[str, ...]
    """What else is said to mean nothing: worth a look where somebody looks anyway."""
    unused: tuple[TaskPart, ...]
    """What is said to be a condition or a change, and is the value of no step."""
    unread: tuple[str, ...] = ()
    """Words that no value carries and that do not decide by their form, where nobody has said what they are for."""

    @property
    def open(self) -> tuple[Finding, ...]:
        """The values that somebody has to look at."""
        return tuple(found for found in self.findings if found.state != "evident")

    @property
    def settled(self) -> bool:
        """Whether all is evident."""
        return not (self.open or self.left or self.unused)


def judge(steps: Sequence[Step], claims: Sequence[TaskPart], sources: EvidenceSources) -> Judgement:
    """Hold a plan against what was said.

    Args:
        steps: Those that would run, with ids and numbers in place of labels and texts.
        claims: What the plan says of the task's words.
        sources: The task, and what else counts.
    """
    located = _locate(claims, sources)
    findings = tuple(_mark_double_use(_findings(steps, located, sources)))
    free = _free(located, findings, sources)
    left = tuple(_words_without_value(located, findings, free, sources))
    idle = tuple(_idle_words(located, sources, left))
    unread = tuple(dict.fromkeys(sources.task.text_at([place]) for place in sorted(free - _telling_by_form(sources))))
    return Judgement(findings, left, idle, tuple(_find_unused(located, findings)), unread if sources.by_form else ())


def open_values(step: Step, sources: EvidenceSources, known_values: Container[str]) -> tuple[Finding, ...]:
    """The values of a call that are not evident, where nobody has said what the words are for.

    Args:
        step: The call.
        sources: The task, and what else counts.
        known_values: Values that results have brought, as texts.
    """
    return tuple(found for found in _findings((step,), (), sources, known_values) if found.state != "evident")


def _findings(
    steps: Sequence[Step], located: Sequence["_Located"], sources: EvidenceSources, known_values: Container[str] = ()
) -> list[Finding]:
    return [
        _finding(step, leaf, located, sources)
        for step in steps
        for leaf in leaves_of(step, sources.lists)
        if decides(leaf, writes=step.writes)
        and not (leaf.value in leaf.choices and leaf.value in sources.fields)
        and str(leaf.value) not in known_values
    ]


def decides(leaf: Leaf, *, writes: bool) -> bool:
    """Whether a value decides what happens: no reference, no default, no word of the schema's own for a comparison."""
    value = leaf.value
    if is_reference(value) or any("default" in part and part["default"] == value for part in leaf.parts):
        return False
    if value is None or value == "":
        return writes and value is None and not any("default" in part for part in leaf.parts)
    return not (leaf.in_pair and leaf.listed is None and leaf.value in leaf.choices)


# Words ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Located:
    """A claim, and where its words stand."""

    claim: TaskPart
    places: frozenset[int] | None
    """In the task; null if they do not stand there."""
    documented: bool
    """They stand in the author's documentation."""


def _locate(claims: Sequence[TaskPart], sources: EvidenceSources) -> list[_Located]:
    places_taken: set[int] = set()
    found: list[_Located] = []
    for claim in claims:
        places = sources.task.find(claim.words, places_taken)
        if places is None and sources.by_form:
            places = _parts(claim.words, sources)
        places_taken |= places or frozenset()
        documented = places is None and sources.documentation.find(claim.words) is not None
        found.append(_Located(claim, places, documented))
    return found


def _parts(words: str, sources: EvidenceSources) -> frozenset[int] | None:
    """Places of the words of a careless quotation that stand in the task, such as a first name of a whole one."""
    quoted = {word for word in words_of(words) if len(word) >= _FEWEST and not _is_known(word, sources)}
    places = frozenset(place for place, word in enumerate(sources.task.words) if word in quoted)
    return places or None


def _free(located: Sequence[_Located], findings: Sequence[Finding], sources: EvidenceSources) -> frozenset[int]:
    """Places of words that no value carries."""
    carried, idle = _value_places(located, findings, sources), _idle(located)
    telling = _telling(sources) | _long_or_named(located, sources)
    return frozenset(
        place
        for place, word in enumerate(sources.task.words)
        if place not in carried
        and (sources.own is None or place < sources.own)
        and (
            place in telling
            if place in idle
            else not _is_known(word, sources) or (sources.by_form and place in telling)
        )
        and not (sources.task.is_ending(place) and (place - 1) in carried | idle)
    )


def _value_places(located: Sequence[_Located], findings: Sequence[Finding], sources: EvidenceSources) -> frozenset[int]:
    """Places of words that some value carries; of what decides by its form, only what stands in the value itself."""
    claimed = frozenset[int]().union(*(one.places or frozenset() for one in located if one.claim.carries))
    found_places = frozenset[int]().union(*(found.places for found in findings))
    if not sources.by_form:
        return claimed | found_places
    spelled = {word for found in findings for word in words_of(found.shown)}
    numbers = frozenset[int]().union(*(found.places for found in findings if _is_measured(found)))
    form = _telling_by_form(sources) - numbers
    return frozenset(
        place
        for place in claimed | found_places
        if place not in form or any(matches(word, sources.task.words[place]) for word in spelled)
    )


def _is_measured(found: Finding) -> bool:
    """Whether a value is a number or a day, which is seldom spelled as in the task."""
    return as_number(found.leaf.value) is not None or as_day(found.leaf.value) is not None


def _idle(located: Sequence[_Located]) -> frozenset[int]:
    return frozenset[int]().union(*(one.places or frozenset() for one in located if not one.claim.carries))


def _words_without_value(
    located: Sequence[_Located], findings: Sequence[Finding], free: frozenset[int], sources: EvidenceSources
) -> Iterator[str]:
    """Words of the task that nothing carries, side by side; those of a request too if they hold what decides."""
    carried = _value_places(located, findings, sources)
    for run in sources.task.runs(free & _telling_by_form(sources) if sources.by_form else free):
        words = sources.task.words_at(run)
        if not _stands_in_other_words(words, carried, sources) and any(_weighs(word) for word in words):
            yield sources.task.text_at(run)


def _telling_by_form(sources: EvidenceSources) -> frozenset[int]:
    """Places of words that decide though nobody has said what they are for."""
    by_form = (
        place
        for place, word in enumerate(sources.task.words)
        if _is_name(place, sources) or _opens(place, sources) or word in sources.restricting
    )
    return _telling(sources).union(by_form)


def _idle_words(located: Sequence[_Located], sources: EvidenceSources, left: Sequence[str]) -> Iterator[str]:
    """Parts that are said to mean nothing, and are not asked about already."""
    words_asked = {word for words in left for word in words_of(words)}
    for one in located:
        if not one.claim.carries and one.places and not words_asked.issuperset(sources.task.words_at(one.places)):
            yield sources.task.text_at(one.places)


def _long_or_named(located: Sequence[_Located], sources: EvidenceSources) -> frozenset[int]:
    """Places of parts that are said to hold no value, and are long for saying nothing, or seem to name something."""
    found: set[int] = set()
    for one in located:
        if not one.claim.carries and one.places:
            words = sources.task.words_at(one.places)
            is_long = sum(2 if len(word) == 1 else len(word) for word in words) > _LONG
            if (is_long and one.claim.use == "none") or any(_is_name(place, sources) for place in one.places):
                found |= one.places
    return frozenset(found)


def _is_name(place: int, sources: EvidenceSources) -> bool:
    """Whether a word is capitalised though no sentence begins with it, and is none of the tools' own."""
    task, token = sources.task, sources.task.tokens[place]
    before = task.text[: token.start].rstrip(" \"'(\u201c\u201e\u00ab\u2019")
    begins = not before or before[-1] in ".!?:;\n\u3002\uff01\uff1f\u2026"
    return task.text[token.start].isupper() and not begins and not _is_known(token.folded, sources)


def _opens(place: int, sources: EvidenceSources) -> bool:
    """Whether a name opens the task: capitalised inside, or capitalised and followed by an ending or a colon."""
    task = sources.task
    if place > 0 or len(task.words) < 2 or not task.text[task.tokens[0].start].isupper():
        return False
    follows = task.text[task.tokens[0].end : task.tokens[1].start]
    if _is_known(task.words[0], sources):
        return False
    return task.is_ending(1) or ":" in follows or _is_mixed(task)


def _is_mixed(task: Passage) -> bool:
    """Whether the first word has a capital inside, as names of companies do."""
    first = task.text[task.tokens[0].start + 1 : task.tokens[0].end]
    return any(letter.isupper() for letter in first)


def _weighs(word: str) -> bool:
    """Whether a word may mean anything alone: no single letter of a script that has words."""
    return len(word) > 1 or not word.isascii() or word.isdigit()


def _is_known(word: str, sources: EvidenceSources) -> bool:
    return any(matches(known, word) or matches(word, known) for known in sources.known)


def _stands_in_other_words(words: Sequence[str], carried: Iterable[int], sources: EvidenceSources) -> bool:
    """Whether words are said again that some value carries."""
    carried_words = set(sources.task.words_at(carried))
    return all(word in carried_words for word in words)


def _telling(sources: EvidenceSources) -> frozenset[int]:
    """Places of what decides by its form: numbers, what stands in quotation marks, names of valid values."""
    task = sources.task
    spans = [span for span, _ in number_spans(task.text)]
    found = {
        place
        for place, token in enumerate(task.tokens)
        if any(start <= token.start and token.end <= end for start, end in spans)
    }
    found.update(*task.quotations())
    labels = {item.label for values in sources.lists.values() for item in values.items}
    for name in labels | sources.names:
        places = task.find_value(name)
        if places is not None and sum(len(task.words[place]) for place in places) > 3:
            found |= places
    return frozenset(found)


# Values ---------------------------------------------------------------------------------------------------------------


def _finding(step: Step, leaf: Leaf, located: Sequence[_Located], sources: EvidenceSources) -> Finding:
    role: Role = "change" if step.writes and not leaf.compared else "condition"
    labels = _labels(leaf)
    base = Finding(step.id, leaf, role, label_of(leaf.value, labels), "unsaid")
    mine = [one for one in located if one.claim.carries and _is_value(one.claim.value, leaf, labels)]
    mine.sort(key=lambda one: (one.claim.use != role, one.places is None, not one.documented, _is_apart(one, leaf)))
    for one in mine:
        if one.places is not None:
            found = _compare_with_words(base, sources.task, one.places, one.claim, sources)
            prior_runs = (
                _compare_with_task(base, leaf, located, sources)
                if sources.by_form and found.state == "unsure"
                else found
            )
            if prior_runs.state == "evident" and found.state == "unsure":
                return prior_runs  # quoted carelessly, and written elsewhere as it is
            return replace(found, words=sources.task.text_at(one.places), places=one.places, source="task")
        if one.documented:
            places = sources.documentation.find(one.claim.words) or frozenset()
            found = _compare_with_words(base, sources.documentation, places, one.claim, sources)
            return replace(found, words=one.claim.words, source="documentation")
    return _compare_with_task(base, leaf, located, sources)


def _is_apart(one: _Located, leaf: Leaf) -> bool:
    """Whether a claim has another value than the very one that it is about."""
    return one.claim.value != leaf.value


def _compare_with_words(
    base: Finding, text: Passage, places: frozenset[int], claim: TaskPart, sources: EvidenceSources
) -> Finding:
    """A value held against the words that are quoted for it."""
    leaf, words = base.leaf, text.words_at(places)
    if leaf.identifies:
        spelled = words_of(str(leaf.value))
        named = any(words[start : start + len(spelled)] == spelled for start in range(len(words)))
        return replace(base, state="evident" if named else "invented", why="" if named else _NOBODY)
    if claim.how and (day := as_day(leaf.value)) is not None:
        given = calculate_day(claim.how, sources.today)
        if given == day:
            return replace(base, state="unsure", why=f"calculated as {claim.how!r}")
        return replace(base, state="unsure", why=f"{claim.how!r} gives {given or 'no day'}")
    meaning = _meaning(leaf, words, text.text_at(places))
    match meaning.fit:
        case "whole" | "part":
            cut = meaning.fit == "whole" and not _is_named(base.shown, sources) and _is_cut(leaf, text, places, sources)
            return replace(base, state="unsure" if cut else "evident", why="the name may go on" if cut else "")
        case "tie":
            alone = all(len(word) < 3 or any(matches(part, word) for part in words_of(base.shown)) for word in words)
            state: State = "ambiguous" if alone else "unsure"
            return replace(base, state=state, others=(base.shown, *meaning.others), why="the words fit others as well")
        case "none":
            return replace(base, state="unsure", others=meaning.others, why="the value does not stand in the words")


_NOBODY: Final = "it was neither looked up nor named in the task"


def _is_named(shown: str, sources: EvidenceSources) -> bool:
    """Whether a text is what some valid value is called."""
    return any(words_of(shown) == words_of(name) for name in sources.names)


def _meaning(leaf: Leaf, words: Sequence[str], shown: str) -> Meaning:
    """How well words say a value."""
    value = leaf.value
    names = _names(leaf)
    if names:
        return meaning_of(label_of(value, _labels(leaf)), names, words)
    day, number = as_day(value), as_number(value)
    if day is not None:
        clock = str(value)[11:].removesuffix("Z")
        return Meaning("whole" if is_written(day, shown) and clock in _MIDNIGHT else "none")
    if number is not None:
        there = not numbers_in(shown).isdisjoint((number, -number)) and not may_be_more(shown)
        return Meaning("whole" if there else "none")
    if isinstance(value, str):
        return meaning_of(value, (), words) if _stands(value, words) else Meaning("none")
    return Meaning("none")  # true, false and null stand in no words


def _stands(value: str, words: Sequence[str]) -> bool:
    return meaning_of(value, (), words).fit == "whole"


def _is_cut(leaf: Leaf, text: Passage, places: frozenset[int], sources: EvidenceSources) -> bool:
    """Whether a name of the task goes on beyond a value that has no list: `Acme` where the words are `Acme Corp`."""
    if not isinstance(leaf.value, str) or _names(leaf) or as_day(leaf.value) or as_number(leaf.value) is not None:
        return False
    spelled = words_of(leaf.value)
    ordered = sorted(places)
    for start in range(len(ordered) - len(spelled) + 1):
        own = ordered[start : start + len(spelled)]
        if all(matches(part, text.words[place]) for part, place in zip(spelled, own, strict=True)):
            beside = [place for place in (own[0] - 1, own[-1] + 1) if place in places]
            return any(_continues(text, own, place) and not _is_known(text.words[place], sources) for place in beside)
    return False


def _continues(text: Passage, own: Sequence[int], beside: int) -> bool:
    """Whether the word beside a name is a part of it: capitalised like it, with nothing but a space between."""
    first, last = min(beside, *own), max(beside, *own)
    start, end = (own[-1], beside) if beside == last else (beside, own[0])
    between = text.text[text.tokens[start].end : text.tokens[end].start]
    capital = text.text[text.tokens[beside].start].isupper() and text.text[text.tokens[own[0]].start].isupper()
    return capital and between == " " and not (beside == first and first == 0)


def _compare_with_task(base: Finding, leaf: Leaf, located: Sequence[_Located], sources: EvidenceSources) -> Finding:
    """A value for which no words of the task are quoted: evident all the same if it stands there as it is."""
    task = sources.task
    text = str(leaf.value)
    if leaf.identifies:
        places = task.find(text) if " ".join(words_of(text)) in " ".join(task.words) else None
        if places is not None and task.words_at(places) == words_of(text):
            return replace(base, state="evident", source="task", places=places, words=task.text_at(places))
        documented = sources.documentation.find(text) is not None
        return replace(base, state="evident" if documented else "invented", why="" if documented else _NOBODY)
    busy = frozenset(place for one in located if one.claim.carries for place in one.places or ())
    places = _places_in_task(leaf, base.shown, sources)
    if places is None:
        return replace(base, why="no words of the task are quoted for it")
    if places & busy:
        return replace(base, state="unsure", source="task", places=places, words=task.text_at(places), why=_OTHERS)
    return replace(base, state="evident", source="task", places=places, words=task.text_at(places))


_OTHERS: Final = "its words are quoted for something else"


def _places_in_task(leaf: Leaf, shown: str, sources: EvidenceSources) -> frozenset[int] | None:
    """Where a value stands in the task as it is."""
    task = sources.task
    day, number = as_day(leaf.value), as_number(leaf.value)
    if number is not None and not _names(leaf):
        for (start, end), readings in number_spans(task.text):
            if number in readings or -number in readings:
                return _tokens(task, start, end)
        return None
    if day is not None:
        return task.find_value(f"{day:%Y-%m-%d}") if str(leaf.value)[11:].removesuffix("Z") in _MIDNIGHT else None
    if not isinstance(leaf.value, str) and not _names(leaf):
        return None
    places = task.find_value(shown)
    if places is None or _meaning(leaf, task.words_at(places), task.text_at(places)).fit != "whole":
        return None
    around = places | {min(places) - 1, max(places) + 1}
    inside = frozenset(place for place in around if 0 <= place < len(task.words))
    return None if _is_cut(leaf, task, inside, sources) else places


def _tokens(task: Passage, start: int, end: int) -> frozenset[int]:
    return frozenset(place for place, token in enumerate(task.tokens) if start <= token.start and token.end <= end)


def _labels(leaf: Leaf) -> Mapping[str, str]:
    """What people call the values of a field, by the value as text."""
    if leaf.listed is not None:
        return {str(item.value): item.label for item in leaf.listed.items}
    none: Mapping[str, str] = {}
    return next((part[LABELS] for part in leaf.parts if LABELS in part), none)


def _names(leaf: Leaf) -> tuple[str, ...]:
    """What all values of a field are called, if they are known."""
    labels = _labels(leaf)
    if leaf.listed is not None:
        return tuple(labels.values())
    return tuple(label_of(value, labels) for value in leaf.choices if value is not None and not isinstance(value, bool))


def _is_value(claimed: Json, leaf: Leaf, labels: Mapping[str, str]) -> bool:
    """Whether a claim is about a value: the value itself, what people call it, or the same number or day."""
    value = leaf.value
    if claimed == value and isinstance(claimed, bool) == isinstance(value, bool):
        return True
    if claimed is None or isinstance(claimed, bool) or isinstance(value, bool) or value is None:
        return False
    if words_of(str(claimed)) == words_of(label_of(value, labels)):
        return True
    number = as_number(value)
    if number is not None:
        other = as_number(claimed)
        said_short = sum(len(word) for word in words_of(str(claimed)) if not word.isdigit()) <= _UNIT
        return number == other or (other is None and said_short and number in numbers_in(str(claimed)))
    day = as_day(value)
    return day is not None and day == as_day(claimed)


def _mark_double_use(findings: Sequence[Finding]) -> Iterator[Finding]:
    """The findings, where words that are said once do not hold for a condition and a change to the same value."""
    for found in findings:
        twice = any(
            other.role != found.role and other.shown == found.shown and other.places & found.places
            for other in findings
        )
        if twice and found.state == "evident":
            yield replace(found, state="unsure", why="the same words are taken for a condition and for a change")
        else:
            yield found


def _find_unused(located: Sequence[_Located], findings: Sequence[Finding]) -> Iterator[TaskPart]:
    """What is said to be a condition or a change, and is the value of no step."""
    used_values = [(found.leaf, _labels(found.leaf)) for found in findings]
    for one in located:
        if one.places is None or not one.claim.carries:
            continue
        if any(_is_value(one.claim.value, leaf, labels) for leaf, labels in used_values):
            continue
        if not any(found.places & one.places for found in findings if found.state == "evident"):
            yield one.claim


def value_texts(outputs: Iterable[Json]) -> frozenset[str]:
    """The values that stand in some results, as texts."""
    return frozenset(text for output in outputs for text in _scalars(output))


def doubts_of_call(step: Step, sources: EvidenceSources, known_values: frozenset[str]) -> tuple[Finding, ...]:
    """The values of a call that come neither from the task, nor from the author, nor from a result.

    Args:
        step: The call.
        sources: The task, and what else counts.
        known_values: Of `value_texts`.
    """
    return open_values(step, sources, known_values)


def _scalars(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        for item in cast("JsonObject", value).values():
            yield from _scalars(item)
    elif isinstance(value, list):
        for item in cast("list[Json]", value):
            yield from _scalars(item)
    elif value is not None:
        yield str(value)
