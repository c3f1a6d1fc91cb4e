"""Questions that a run asks whoever gave it its task, and the answers that it goes on with.

A question is about what the task says or what would follow from it; it is no request for permission, which an approval
is. It waits in the run that asks: the answer is a signal, which any process may leave.
"""

from typing import Final, Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts.base.base import Contract, Json, JsonObject

QuestionReason: TypeAlias = Literal["unclear", "unsure", "wide", "irreversible"]
"""unclear: what the task means cannot be told. unsure: it was read in a way that nobody has confirmed. wide: more items
would change than the tool's author lets pass unasked. irreversible: what would be done cannot be taken back."""

_SIGNAL: Final = "answer:"
LONGEST_ANSWER: Final = 20_000
"""Characters."""


class Choice(Contract):
    """One of the answers that a question expects; others may be given in words."""

    value: str = Field(max_length=500)
    """What to answer."""
    label: str
    """What people call it."""
    outcome: str = ""
    """What would happen then."""


class PreviewedItem(Contract):
    """An item before a change, and what it would get."""

    before: Json = None
    after: Json = None


class ChangePreview(Contract):
    """What a step would do, before it does it."""

    step: str
    tool: str
    """`name@version`."""
    calls: int
    items: int
    """How many would be changed."""
    sample: tuple[PreviewedItem, ...] = ()
    """The first of them."""


class OpenQuestion(Contract):
    """What a run asks, and waits to be told."""

    run_id: str
    position: str
    """Where the run waits; the next question of a run has another one."""
    question: str
    """In the language of the task, if the model could word it."""
    reason: QuestionReason
    choices: tuple[Choice, ...] = ()
    assumptions: tuple[str, ...] = ()
    """What was taken for granted, a sentence each."""
    preview: ChangePreview | None = None


class Answer(Contract):
    """What a run is told: one of the choices by its value, or words."""

    answer: str = Field(min_length=1, max_length=LONGEST_ANSWER)

    def payload(self) -> JsonObject:
        """As it is kept with the run."""
        return self.model_dump(mode="json")


def answer_signal(position: str) -> str:
    """Name of the signal that answers the question at a position."""
    return f"{_SIGNAL}{position}"
