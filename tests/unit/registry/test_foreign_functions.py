"""Functions as other libraries' users write them, as tools: defaults that are no JSON, aliases, wrappers."""

import functools
import math
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from tests.unit.registry.test_functions import CONTEXT
from toolcrib.kinds.python.functions import tool

WORDS: Any = Field(description="What for.")
LIMIT: Any = Field(default=5, ge=1)
TAGS: Any = Field(default_factory=list[str])
NOTHING_SAID: Any = object()


class Sized(BaseModel):
    size_cm: Annotated[int, Field(alias="sizeCm")]


def measure() -> Sized:
    return Sized.model_validate({"sizeCm": 3})


def search(words: str = WORDS, limit: int = LIMIT, tags: list[str] = TAGS) -> list[Any]:
    return [words, limit, tags]


def cap(most: float = math.inf, least: int = NOTHING_SAID) -> bool:
    return most == math.inf and least is NOTHING_SAID


async def double(n: int) -> int:
    return 2 * n


@functools.wraps(double)
def logged(*arguments: Any, **keywords: Any) -> Any:
    return double(*arguments, **keywords)


def first(names: list[str]) -> str:
    return next(iter(names))


@pytest.mark.requirement("registry.function_run")
async def test_a_model_that_comes_back_has_the_names_of_its_schema():
    measured = tool(measure)

    assert measured.definition.output_schema == {
        "type": "object",
        "properties": {"sizeCm": {"type": "integer"}},
        "required": ["sizeCm"],
    }
    assert await measured.run({}, CONTEXT) == {"sizeCm": 3}


@pytest.mark.requirement("registry.function_schema")
async def test_a_field_in_place_of_a_default_describes_its_parameter():
    searching = tool(search)
    schema = searching.definition.input_schema

    assert schema["properties"] == {
        "words": {"type": "string", "description": "What for."},
        "limit": {"type": "integer", "default": 5, "minimum": 1},
        "tags": {"type": "array", "items": {"type": "string"}},
    }
    assert schema["required"] == ["words"]
    assert await searching.run({"words": "a"}, CONTEXT) == ["a", 5, []]
    assert await searching.run({"words": "a", "limit": 2, "tags": ["b"]}, CONTEXT) == ["a", 2, ["b"]]


@pytest.mark.requirement("registry.function_schema")
async def test_a_default_that_json_has_no_form_for_is_known_to_the_function_only():
    capped = tool(cap)

    assert capped.definition.input_schema["properties"] == {"most": {"type": "number"}, "least": {"type": "integer"}}
    assert await capped.run({}, CONTEXT) is True


@pytest.mark.requirement("registry.function_run")
async def test_a_plain_function_around_an_async_one_is_awaited():
    assert await tool(logged).run({"n": 3}, CONTEXT) == 6


@pytest.mark.requirement("registry.function_run")
async def test_a_function_that_raises_stop_iteration_ends_all_the_same():
    with pytest.raises(RuntimeError, match="the function raised StopIteration"):
        await tool(first).run({"names": []}, CONTEXT)
