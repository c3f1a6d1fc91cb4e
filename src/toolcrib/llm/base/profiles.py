"""What is known of models besides their names: how much one may ask of them.

A model that is not listed is taken to be a large one.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct


class Profile(Struct, frozen=True):
    """What a model is good for."""

    reads_tasks: bool = True
    """It can say of every word of a task what it is for. One that cannot is not asked to; its plans are held against
    what stands in the task as it is, and what they leave out is put to it as a question. It corrects no call that
    writes: what such a model changes then is not what the task says."""
    ends_texts: bool = True
    """It ends what it writes. One that goes on and on is told the longest length of an answer's summary, and words no
    questions."""
    temperature: float = 0.2
    """With which it is asked if the author of a tool says nothing."""


LARGE: Final = Profile()
_KNOWN: Final[Mapping[str, Profile]] = MappingProxyType(
    {"local:qwen2.5-coder-1.5b": Profile(reads_tasks=False, ends_texts=False, temperature=0.0)}
)


def profile_of(model: str) -> Profile:
    """The profile of a model.

    Args:
        model: `provider:model`.
    """
    return _KNOWN.get(model, LARGE)
