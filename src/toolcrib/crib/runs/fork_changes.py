"""What a fork shall have different, from how people write it: `model=…`, `prompt=…`, `tool:NAME=VERSION`, `policy=…`.

Only names are read here, and values checked as far as they have a shape of their own. What they mean for a run, and
who may change it, is the matter of `forks`.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeVar, cast

from msgspec import Struct
from pydantic import ValidationError

from toolcrib.contracts import InvalidInput, Json, JsonObject
from toolcrib.contracts.runs.forks import ForkChanges, PolicyChange
from toolcrib.workflows.checks import near

_LLM: Final = (
    "temperature",
    "max_tokens",
    "max_input_tokens",
    "top_p",
    "frequency_penalty",
    "presence_penalty",
    "reasoning_effort",
    "tool_calling",
)
"""Fields of `LLMConfig` that are no matter of where a model is reached."""
_TOOL: Final = "tool:"
_INPUT: Final = "input."
_SHOWN: Final = ("model", "prompt", "policy", "input", f"{_TOOL}NAME", f"{_INPUT}FIELD", *_LLM)

_Value = TypeVar("_Value")


class Wanted(Struct, frozen=True):
    """What is to be different."""

    changes: ForkChanges
    model: str | None = None
    """`provider:model`."""
    tools: Mapping[str, str] = {}
    """Versions or content hashes, by name."""
    input: JsonObject = {}
    """Fields of the input."""

    @property
    def of_definition(self) -> bool:
        """Whether the run goes by other rules or other tools than those of its definition."""
        return bool(self.model or self.tools or not self.changes.are_none)


def read_changes(given: Mapping[str, Json]) -> Wanted:
    """Read what a fork shall have different.

    Args:
        given: Values by name: `model`, `prompt`, `policy` (an object), `tool:NAME`, `input` (an object) or
            `input.FIELD`, and the fields of a model's configuration such as `temperature`.

    Raises:
        InvalidInput: There is no such name, or its value is not of the right kind.
    """
    tools: dict[str, str] = {}
    fields: JsonObject = {}
    for name, value in given.items():
        if name.startswith(_TOOL):
            tools[name.removeprefix(_TOOL)] = _text(name, value)
        elif name == "input":
            fields |= _object(name, value)
        elif name.startswith(_INPUT):
            fields[name.removeprefix(_INPUT)] = value
        elif name not in _SHOWN:
            raise InvalidInput(f"a fork has no {name!r} to change; {near(name, _SHOWN)}")
    policy = _of(given, "policy", _object)
    changes = ForkChanges(
        prompt=_of(given, "prompt", _text),
        llm={name: given[name] for name in _LLM if name in given},
        policy=None if policy is None else _policy(policy),
    )
    return Wanted(changes, _of(given, "model", _text), tools, fields)


def _of(given: Mapping[str, Json], name: str, read: Callable[[str, Json], _Value]) -> _Value | None:
    return read(name, given[name]) if name in given else None


def _text(name: str, value: Json) -> str:
    if isinstance(value, str) and value:
        return value
    raise InvalidInput(f"{name!r} is a text, and this is {value!r}")


def _object(name: str, value: Json) -> JsonObject:
    if isinstance(value, dict):
        return cast("JsonObject", value)
    raise InvalidInput(f"{name!r} is a JSON object, and this is {value!r}")


def _policy(value: JsonObject) -> PolicyChange:
    wrong = next((name for name in value if name not in PolicyChange.model_fields), None)
    if wrong is not None:
        raise InvalidInput(f"a policy has no {wrong!r} to change; {near(wrong, PolicyChange.model_fields)}")
    try:
        return PolicyChange.model_validate(value)
    except ValidationError as problem:
        found = problem.errors(include_url=False, include_input=False)[0]
        raise InvalidInput(f"'policy' is not valid: {'.'.join(map(str, found['loc']))}: {found['msg']}") from problem
