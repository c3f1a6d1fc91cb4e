"""Evidence over any text: it never fails, and it never finds a value where the value is not."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.agents.evidence import EvidenceSources, Passage, Step, TaskPart, calculate_day, judge, words_of
from toolcrib.agents.evidence.quantities import number_spans, numbers_in

pytestmark = pytest.mark.requirement("agents.evidence")

TODAY = date(2026, 3, 11)
SCHEMA = {
    "type": "object",
    "properties": {"company": {"type": "string"}, "amount": {"type": "number"}, "id": {"type": "string"}},
}
TEXT = st.text(max_size=60)
USES = st.sampled_from(["condition", "change", "request", "none"])
CLAIMS = st.lists(st.builds(TaskPart, TEXT, USES, TEXT | st.integers() | st.none(), TEXT), max_size=6)


def said(task: str) -> EvidenceSources:
    return EvidenceSources(Passage(task), Passage(""), TODAY)


@given(TEXT, CLAIMS, st.text(min_size=1, max_size=20), st.integers())
def test_no_task_and_no_reading_breaks_the_judgement(task: str, claims: list[TaskPart], company: str, amount: int):
    step = Step("search", {"company": company, "amount": amount}, SCHEMA, writes=False)

    judged = judge((step,), tuple(claims), said(task))

    assert len(judged.findings) == 2
    for found in judged.findings:
        invented = found.state == "invented" and found.leaf.identifies  # a value without a letter is no name
        assert invented or found.state in {"evident", "unsure", "unsaid"}
        assert all(0 <= place < len(words_of(task)) for place in found.places)


@given(TEXT, CLAIMS, st.from_regex(r"[a-z]{2}[0-9]{3}", fullmatch=True))
def test_an_id_that_does_not_stand_in_the_task_is_never_evident(task: str, claims: list[TaskPart], key: str):
    step = Step("update", {"id": key}, SCHEMA, writes=True)

    [found] = judge((step,), (*claims, TaskPart(task, "condition", key)), said(task)).findings

    spelled = words_of(key)
    words = words_of(task)
    stands = any(words[start : start + len(spelled)] == spelled for start in range(len(words)))
    assert (found.state == "evident") == stands
    assert stands or found.state == "invented"


@given(st.text(st.characters(whitelist_categories=["L", "Zs"]), max_size=60), st.text(min_size=1, max_size=12))
def test_a_name_is_evident_only_where_its_letters_are(task: str, company: str):
    step = Step("search", {"company": company}, SCHEMA, writes=False)

    [found] = judge((step,), (TaskPart(task, "condition", company),), said(task)).findings

    if found.state == "evident":
        letters = "".join(words_of(task))
        assert all(part in letters for part in words_of(company))


@given(st.integers(min_value=0, max_value=10**12))
def test_a_number_is_read_however_its_thousands_are_parted(number: int):
    for written in (f"{number}", f"{number:,}", f"{number:,}".replace(",", "."), f"{number:,}".replace(",", " ")):
        assert number in numbers_in(f"over {written} euros")


@given(TEXT)
def test_numbers_stand_where_they_are_said_to(text: str):
    for (start, end), readings in number_spans(text):
        assert 0 <= start < end <= len(text)
        assert readings or not any(letter.isdecimal() for letter in text[start:end])


@given(TEXT)
def test_a_calculation_gives_a_day_or_nothing(text: str):
    assert isinstance(calculate_day(f"today{text}", TODAY), date | None)
