"""Evidence: the sources of values in plans and calls, and second readings of uncertain ones.

Pure: data in, data out, except the request of a second reading. It knows no language, system or model. What
characters, schemas and reference data cannot decide is uncertain, and a model or a person decides. `agents.planner`
and `agents.turn` import it.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.agents.evidence.planned_values import Leaf, Lists, Path, Step, is_reference, leaves_of
    from toolcrib.agents.evidence.quantities import as_day, as_number, calculate_day
    from toolcrib.agents.evidence.second_reading import (
        SECOND_SYSTEM,
        Known,
        Point,
        advice,
        describe_finding,
        learn,
        points_of,
        second_question,
        second_schema,
        unclear_in,
        value_key,
    )
    from toolcrib.agents.evidence.task_parts import TaskPart, read_claims, reading_schema
    from toolcrib.agents.evidence.value_sources import (
        EvidenceSources,
        Finding,
        Judgement,
        doubts_of_call,
        judge,
        value_texts,
    )
    from toolcrib.agents.evidence.word_matching import Passage, words_of
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.agents.evidence.planned_values": "Leaf Lists Path Step is_reference leaves_of",
            "toolcrib.agents.evidence.quantities": "as_day as_number calculate_day",
            "toolcrib.agents.evidence.second_reading": (
                "Known Point SECOND_SYSTEM advice describe_finding learn points_of second_question second_schema "
                "unclear_in value_key"
            ),
            "toolcrib.agents.evidence.task_parts": "TaskPart read_claims reading_schema",
            "toolcrib.agents.evidence.value_sources": (
                "EvidenceSources Finding Judgement doubts_of_call judge value_texts"
            ),
            "toolcrib.agents.evidence.word_matching": "Passage words_of",
        },
    )

__all__ = [
    "SECOND_SYSTEM",
    "EvidenceSources",
    "Finding",
    "Judgement",
    "Known",
    "Leaf",
    "Lists",
    "Passage",
    "Path",
    "Point",
    "Step",
    "TaskPart",
    "advice",
    "as_day",
    "as_number",
    "calculate_day",
    "describe_finding",
    "doubts_of_call",
    "is_reference",
    "judge",
    "learn",
    "leaves_of",
    "points_of",
    "read_claims",
    "reading_schema",
    "second_question",
    "second_schema",
    "unclear_in",
    "value_key",
    "value_texts",
    "words_of",
]
