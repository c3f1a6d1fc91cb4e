"""Content filters: what is refused and what is replaced, wherever it stands in a value."""

from typing import Any

import pytest

from toolcrib.contracts import ContentFilter, Filtered, Guardrail, Json, NoDelete, Reason
from toolcrib.core.policy import filters_of, screen, withholds_text

pytestmark = pytest.mark.requirement("guardrails.content")


def rule(**fields: Any) -> ContentFilter:
    return ContentFilter.model_validate(fields)


REDACTS = rule(words=("acme", "Project  X"), personal_data=("email", "card"), action="redact")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("ACME's ann@acme.de", "[word]'s [email]"),
        ("project\n x, projectx, acmes", "[word], projectx, acmes"),
        ({"a": ["acme", 1, None, True], "ann@x.de": 2.5}, {"a": ["[word]", 1, None, True], "[email]": 2.5}),
        ([4111111111111111, 4111111111111112, 7], ["[card]", 4111111111111112, 7]),
    ],
)
def test_what_is_found_is_replaced_by_its_kind(value: Json, expected: Json):
    screening = screen([REDACTS], "tool_input", value)

    assert screening.value == expected
    assert screening.passes
    assert screening.decision is not None
    assert (screening.decision.outcome, screening.decision.rule) == ("allow", "content_filter")
    assert screening.decision.inputs["place"] == "tool_input"


def test_a_value_in_which_nothing_is_found_is_left_as_it_is():
    value = {"a": ["b", 1], "c": 10**13}

    screening = screen([REDACTS, rule(words=("secret",))], "tool_output", value)

    assert (screening.value, screening.decision, screening.passes) == (value, None, True)
    assert screening.value is not value or screening.value == value


def test_what_overlaps_is_replaced_once_by_what_begins_first():
    both = rule(words=("ann", "example"), personal_data=("email",), action="redact")

    screening = screen([both], "model_input", "to ann@example.org, example")

    assert screening.value == "to [email], [word]"
    assert screening.decision is not None
    assert screening.decision.inputs["found"] == {"email": 1, "word": 1}


def test_a_rule_that_refuses_wins_and_never_repeats_what_it_has_found():
    blocks = rule(words=("hush",), personal_data=("ssn",))

    screening = screen([REDACTS, blocks], "model_output", {"acme": ["Hush!", "078-05-1120", "hush"]})

    decision = screening.decision
    assert decision is not None
    assert not screening.passes
    assert (decision.outcome, decision.reason) == ("deny", Reason.CONTENT_BLOCKED)
    assert decision.inputs == {"place": "model_output", "found": {"ssn": 1, "word": 2}}
    assert decision.message == (
        "model_output holds what a content_filter does not let pass (ssn, word); say it without that"
    )


@pytest.mark.parametrize("place", ["model_input", "model_output", "tool_input", "tool_output"])
def test_a_rule_applies_to_its_places_only(place: Filtered):
    rules: list[Guardrail] = [NoDelete(), rule(words=("x",), applies_to=("tool_input", "model_output"))]

    assert bool(filters_of(rules, place)) is (place in {"tool_input", "model_output"})
    assert screen(rules, place, "x").passes is (place not in {"tool_input", "model_output"})


def test_text_is_withheld_from_those_who_watch_if_a_filter_must_see_it_whole():
    assert withholds_text([rule(applies_to=("model_output",))])
    assert not withholds_text([rule(applies_to=("model_input", "tool_output")), NoDelete()])


def test_words_of_blanks_only_match_nothing():
    assert screen([rule(words=(" ",))], "tool_input", "a  b").decision is None
