"""What a small model is told of something that the task names and its plan does not use.

For steps whose plan has no outline, see `outline`.
"""

from collections.abc import Iterator, Mapping

from toolcrib.agents.evidence import as_day, as_number, words_of
from toolcrib.agents.evidence.field_values import Kinds
from toolcrib.agents.evidence.quantities import numbers_in
from toolcrib.core.providers import ReferenceList


def use_of(text: str, step: str, kinds: Kinds, lists: Mapping[str, ReferenceList]) -> str:
    """What a model is told of a thing that its plan does not use.

    Args:
        text: The thing.
        step: The step that selects the items.
        kinds: What fields hold.
        lists: Valid values of fields.
    """
    fields = " or ".join(_fields(text, kinds, lists))
    place = f"{step} as {fields}" if fields else step
    return f'no step uses "{text}"; add it to {place} and keep the other conditions, unless it is what the items get'


def _fields(text: str, kinds: Kinds, lists: Mapping[str, ReferenceList]) -> Iterator[str]:
    """The fields that a thing may be a value of: those with a valid value of its name, else those of its kind."""
    listed = [
        name for name, values in lists.items() if any(words_of(item.label) == words_of(text) for item in values.items)
    ]
    if listed:
        yield from listed
        return
    is_number = as_number(text) is not None or bool(numbers_in(text))
    kind = "day" if as_day(text) is not None else "number" if is_number else "text"
    for name, known in kinds.items():
        if known == kind and name not in lists and name != "id" and not name.endswith("_id"):
            yield name
