"""Python functions as tools: what becomes of a signature and a docstring, and how a function is called."""

import asyncio
import inspect
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum
from typing import Annotated, Any, Literal, Optional, cast

import docstring_parser
import pytest
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from toolcrib.contracts import InvalidDefinition
from toolcrib.core.registry import compile_schema
from toolcrib.infrastructure.net import HttpSession
from toolcrib.kinds.dispatch import check_tool
from toolcrib.kinds.python.context import ToolContext
from toolcrib.kinds.python.functions import tool
from toolcrib.kinds.python.schemas import schema_of_arguments, schema_of_results, simple_schema
from toolcrib.kinds.python.shape import PythonImplementation

CONTEXT = ToolContext(
    run_id="run_1",
    position="t1.c1",
    realm="acme",
    principal="ann",
    idempotency_key="run_1/t1.c1",
    attempt=1,
    auth={"token": "t"},
    http=HttpSession(),
)


class Stage(Enum):
    OPEN = "open"
    WON = "won"


@dataclass
class Deal:
    """A deal."""

    id: str
    amount: float = 0.0


class Filter(BaseModel):
    stages: list[Stage] = [Stage.OPEN]


EVERYTHING = Filter()


class Page(TypedDict):
    size: int


def nothing() -> None:
    """Do nothing."""


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    definition = tool(function).definition
    check_tool(definition)
    return definition.input_schema


@pytest.mark.requirement("registry.function_schema")
def test_a_bare_decorator_makes_a_writing_tool_with_the_function_s_name_and_summary():
    @tool
    def move_deal(deal_id: str) -> bool:
        """Move a deal to the next stage.

        It cannot be moved back.
        """
        return bool(deal_id)

    definition = move_deal.definition

    assert (definition.name, definition.version, definition.side_effects) == ("move_deal", "1.0.0", "writes")
    assert definition.description == "Move a deal to the next stage.\n\nIt cannot be moved back."
    assert definition.input_schema == {
        "type": "object",
        "properties": {"deal_id": {"type": "string"}},
        "required": ["deal_id"],
        "additionalProperties": False,
    }
    assert definition.output_schema == {"type": "boolean"}
    assert isinstance(definition.implementation, PythonImplementation)
    assert definition.implementation.function.endswith(".<locals>.move_deal")
    assert move_deal.definition is definition


@pytest.mark.requirement("registry.function_schema")
def test_options_become_fields_of_the_definition():
    @tool(name="crm.ping", version="2.1.0", description="Is it there?", side_effects="none", tags=("crm",))
    def ping() -> str:
        """Not this text."""
        return "pong"

    definition = ping.definition

    assert (definition.name, definition.version, definition.tags) == ("crm.ping", "2.1.0", ("crm",))
    assert (definition.description, definition.side_effects) == ("Is it there?", "none")
    assert definition.input_schema["properties"] == {}


@pytest.mark.requirement("registry.function_schema")
def test_a_function_without_docstring_and_result_has_neither_description_nor_output_schema():
    def silent(a: int): ...

    assert tool(silent).definition.description == ""
    assert tool(silent).definition.output_schema is None
    assert tool(nothing).definition.output_schema is None


@pytest.mark.requirement("registry.function_schema")
def test_parameters_of_a_google_docstring_are_described_and_left_out_of_the_summary():
    def search(company: str, limit: int = 10) -> list[str]:
        """Find deals.

        Args:
            company: Part of the name,
                in any case.
            limit: At most so many.

        Returns:
            Ids.
        """
        return [company] * limit

    definition = tool(search).definition

    assert definition.description == "Find deals."
    assert definition.input_schema["properties"] == {
        "company": {"type": "string", "description": "Part of the name,\nin any case."},
        "limit": {"type": "integer", "default": 10, "description": "At most so many."},
    }
    assert definition.input_schema["required"] == ["company"]
    assert definition.output_schema == {"type": "array", "items": {"type": "string"}}


@pytest.mark.requirement("registry.function_schema")
def test_parameters_of_a_numpy_docstring_are_described():
    def search(company: str, limit: int = 10) -> None:
        """Find deals.

        Parameters
        ----------
        company : str
            Part of the name.
        limit : int
            At most so many.
        """

    definition = tool(search).definition

    assert definition.description == "Find deals."
    described = {name: part["description"] for name, part in definition.input_schema["properties"].items()}
    assert described == {"company": "Part of the name.", "limit": "At most so many."}


@pytest.mark.requirement("registry.function_schema")
def test_an_annotation_s_bounds_and_description_stay():
    def page(size: Annotated[int, Field(gt=0, le=100, description="Rows.")] = 20) -> None: ...

    assert schema_of(page)["properties"]["size"] == {
        "type": "integer",
        "exclusiveMinimum": 0,
        "maximum": 100,
        "description": "Rows.",
        "default": 20,
    }


@pytest.mark.requirement("registry.function_schema")
def test_every_kind_of_parameter_has_a_schema_without_made_up_titles():
    def update(
        deal: Deal,
        where: Filter,
        page: Page,
        *,
        stage: Stage,
        order: Literal["up", "down"],
        note: str | None = None,
        title: dict[str, Any] = {"title": "kept", "default": 1},  # noqa: B006 - defaults are only written down
        when: datetime = datetime(2026, 1, 31, tzinfo=UTC),
    ) -> None: ...

    schema = schema_of(update)
    parts, shared = schema["properties"], schema["$defs"]

    assert parts["deal"] == {"$ref": "#/$defs/Deal"}
    assert shared["Deal"]["properties"]["amount"] == {"type": "number", "default": 0.0}
    assert shared["Deal"]["description"] == "A deal."
    assert shared["Filter"]["properties"]["stages"]["default"] == ["open"]
    assert shared["Stage"] == {"enum": ["open", "won"], "type": "string"}
    assert parts["order"] == {"enum": ["up", "down"], "type": "string"}
    assert parts["note"] == {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}
    assert parts["title"] == {
        "type": "object",
        "additionalProperties": True,
        "default": {"title": "kept", "default": 1},
    }
    assert parts["when"]["format"] == "date-time"
    assert schema["required"] == ["deal", "where", "page", "stage", "order"]


@pytest.mark.requirement("registry.function_schema", "registry.function_run")
async def test_a_parameter_may_have_any_name():
    @tool
    def odd(
        json: str, copy: int = 1, model_dump: str = "", schema: str = "", _hidden: str = "", title: str = ""
    ) -> Any:
        return [json, copy, model_dump, schema, _hidden, title]

    arguments = {"json": "a", "copy": 2, "model_dump": "b", "schema": "c", "_hidden": "d", "title": "e"}

    assert list(odd.definition.input_schema["properties"]) == list(arguments)
    assert await odd.run(arguments, CONTEXT) == list(arguments.values())


@pytest.mark.requirement("registry.function_schema")
def test_the_output_schema_is_that_of_the_result_as_json():
    def find() -> list[Deal] | None:
        return None

    definition = tool(find).definition
    assert definition.output_schema is not None
    output = compile_schema(definition.output_schema)

    assert output.is_valid([{"id": "d1", "amount": 1.5}])
    assert output.is_valid(None)
    assert not output.is_valid([{"amount": 1.5}])
    assert tool(tool_that_returns_anything).definition.output_schema is None


def tool_that_returns_anything() -> Any:
    return object()


@pytest.mark.requirement("registry.function_run")
async def test_a_function_gets_python_values_and_its_result_comes_back_as_json():
    @tool
    async def update(deal: Deal, stage: Stage, when: datetime, where: Filter = EVERYTHING) -> dict[str, Any]:
        assert isinstance(where, Filter)
        return {"deal": deal, "stage": stage, "when": when}

    arguments = {"deal": {"id": "d1"}, "stage": "won", "when": "2026-01-31T12:00:00Z"}

    assert await update.run(arguments, CONTEXT) == {
        "deal": {"id": "d1", "amount": 0.0},
        "stage": "won",
        "when": "2026-01-31T12:00:00Z",
    }


@pytest.mark.requirement("registry.function_run")
async def test_a_parameter_that_is_not_given_has_the_function_s_own_default():
    sentinel: list[str] = ["own"]

    @tool
    def read(tags: list[str] = sentinel) -> bool:
        return tags is sentinel

    assert await read.run({}, CONTEXT) is True
    assert await read.run({"tags": ["own"]}, CONTEXT) is False


@pytest.mark.requirement("registry.function_run")
async def test_a_plain_function_runs_in_a_thread_and_an_async_one_on_the_loop():
    @tool
    def plain() -> int:
        return threading.get_ident()

    @tool
    async def on_the_loop() -> int:
        await asyncio.sleep(0)
        return threading.get_ident()

    assert await plain.run({}, CONTEXT) != threading.get_ident()
    assert await on_the_loop.run({}, CONTEXT) == threading.get_ident()


@pytest.mark.requirement("registry.function_run")
async def test_arguments_that_the_schema_cannot_exclude_are_refused_before_the_function_runs():
    ran: list[datetime] = []

    @tool
    def at(when: datetime) -> None:
        ran.append(when)

    with pytest.raises(ValidationError):
        await at.run({"when": "yesterday"}, CONTEXT)
    with pytest.raises(ValidationError):
        await at.run({"when": "2026-01-31T12:00:00Z", "argument_0": 1}, CONTEXT)
    assert ran == []


@pytest.mark.requirement("registry.function_run")
async def test_a_result_of_another_type_comes_back_for_the_output_check_to_judge():
    def careless(n: int) -> str:
        return cast("Any", n)

    careless_tool = tool(careless)
    definition = careless_tool.definition
    assert definition.output_schema is not None

    result = await careless_tool.run({"n": 3}, CONTEXT)

    assert result == 3
    assert not compile_schema(definition.output_schema).is_valid(result)


@pytest.mark.requirement("registry.function_context")
@pytest.mark.parametrize("optional", [False, True])
async def test_a_function_gets_its_context_and_the_model_does_not_see_the_parameter(optional: bool):
    async def required(n: int, context: ToolContext) -> list[Any]:
        return [n, context.principal, context.auth["token"]]

    async def with_default(n: int, context: ToolContext | None = None) -> list[Any]:
        assert context is not None
        return [n, context.principal, context.auth["token"]]

    asking = tool(with_default if optional else required)

    assert list(asking.definition.input_schema["properties"]) == ["n"]
    assert "$defs" not in asking.definition.input_schema
    assert await asking.run({"n": 1}, CONTEXT) == [1, "ann", "t"]
    with pytest.raises(ValidationError):
        await asking.run({"n": 1, "context": {"principal": "owner"}}, CONTEXT)


@pytest.mark.requirement("registry.function_transparent")
async def test_a_decorated_function_is_still_the_function():
    @tool
    def double(n: int) -> int:
        """Twice."""
        return 2 * n

    @tool(side_effects="none")
    async def half(n: int) -> float:
        return n / 2

    assert double(4) == 8
    assert await half(3) == 1.5
    assert (vars(double)["__name__"], double.__doc__) == ("double", "Twice.")


class Opaque:
    """No JSON form."""


def variadic(*names: str) -> None: ...
def keywords(**names: str) -> None: ...
def positional(name: str, /) -> None: ...
def unannotated(name: str) -> None: ...
def unknown(name: str) -> None: ...
def none_default(limit: Any = None) -> None: ...
def opaque(thing: Opaque) -> None: ...
def callback(then: Callable[[int], int]) -> None: ...
def _private() -> None: ...
def worded(name: Any) -> None: ...
def pattern(name: Annotated[str, Field(pattern="(")]) -> None: ...


def half_opaque(name: date, thing: Opaque) -> None: ...


def opaque_result() -> Opaque:
    raise NotImplementedError


def generator() -> Iterator[Opaque]:
    raise NotImplementedError


unannotated.__annotations__ = {}
unknown.__annotations__ = {"name": "Missing"}
none_default.__annotations__ = {"limit": int}
worded.__annotations__ = {"name": "who it is"}

REFUSED: list[tuple[Callable[..., Any], str]] = [
    (variadic, "tool 'variadic': parameter 'names' cannot be named in JSON; use ordinary parameters"),
    (keywords, "tool 'keywords': parameter 'names' cannot be named in JSON"),
    (positional, "tool 'positional': parameter 'name' cannot be named in JSON"),
    (unannotated, "tool 'unannotated': parameter 'name' has no type hint; add one, e.g. name: str"),
    (unknown, "tool 'unknown': name 'Missing' is not defined; import or define it"),
    (none_default, "tool 'none_default': the default None of parameter 'limit' is not of its type; change one"),
    (opaque, "tool 'opaque': JSON cannot represent the type Opaque of parameter 'thing'; bind it with functools"),
    (half_opaque, "tool 'half_opaque': JSON cannot represent the type Opaque of parameter 'thing'"),
    (callback, "tool 'callback': JSON cannot represent the type collections.abc.Callable[[int], int] of param"),
    (opaque_result, "tool 'opaque_result': JSON cannot represent the type Opaque of the result; pass output_sc"),
    (generator, "tool 'generator': JSON cannot represent the type list[tests.unit.registry.test_"),
    (worded, "tool 'worded': a type hint is not a type: Forward reference must be an expression -- got 'who it is'"),
    (pattern, "tool 'pattern': the constraints of parameter 'name' cannot be applied: check its pattern and limits"),
    (_private, "tool '_private': option 'name' is '_private': String should match pattern"),
]


@pytest.mark.requirement("registry.function_refused")
@pytest.mark.parametrize(("function", "message"), REFUSED)
def test_a_signature_that_cannot_be_a_tool_is_refused_by_name(function: Callable[..., Any], message: str):
    with pytest.raises(InvalidDefinition) as caught:
        _ = tool(function).definition

    assert str(caught.value).startswith(message)
    assert "pydantic-core" not in str(caught.value)


@pytest.mark.requirement("registry.function_refused")
def test_an_option_out_of_bounds_is_refused_by_name():
    with pytest.raises(InvalidDefinition, match=r"tool 'nothing': option 'timeout_s' is -1.0: .* correct it in @tool"):
        tool(timeout_s=-1.0)(nothing)


@pytest.mark.requirement("registry.function_refused")
def test_an_unknown_option_is_refused_where_it_is_given_with_the_one_that_was_meant():
    misspelt: Any = {"side_effect": "reads"}

    with pytest.raises(InvalidDefinition, match=r"no option 'side_effect'; did you mean 'side_effects'\?"):
        tool(**misspelt)(nothing)
    far_off: Any = {"quux": 1}
    with pytest.raises(InvalidDefinition, match="no option 'quux'; leave it out"):
        tool(**far_off)(nothing)


@pytest.mark.requirement("registry.function_refused")
def test_a_type_that_is_defined_later_is_looked_up_when_the_tool_is_used():
    def later(thing: Any) -> int:
        return len(str(thing))

    later.__annotations__["thing"] = "Later"
    made = tool(later)
    with pytest.raises(InvalidDefinition, match="name 'Later' is not defined; import or define it"):
        _ = made.definition
    globals()["Later"] = int
    try:
        assert made.definition.input_schema["properties"] == {"thing": {"type": "integer"}}
    finally:
        del globals()["Later"]


SIMPLE_HINTS = (
    *(str, int, float, bool, Any, list[str], list[Any], dict[str, int], dict[str, Any]),
    *(str | None, Optional[int], list[float] | None, dict[str, list[bool]], list[dict[str, str] | None]),  # noqa: UP045
)
NOT_SIMPLE = (Literal["a"], Stage, Deal, Filter, Page, bytes, tuple[int, str], int | str, None, list[Stage], set[str])
DEFAULTS: tuple[Any, ...] = (..., None, "x", "é", 1, 1.5, True, float("inf"), [], {})


@pytest.mark.requirement("registry.function_schema_alike")
@pytest.mark.parametrize("hint", SIMPLE_HINTS, ids=str)
def test_the_schema_of_a_simple_type_is_letter_by_letter_that_of_pydantic(hint: Any):
    assert json.dumps(simple_schema(hint)) == json.dumps(schema_of_results(TypeAdapter(hint)))
    said: list[str] = []
    for default in DEFAULTS:

        def one(first: str, it: Any) -> None:
            """Do it.

            Args:
                it: What to do.
            """

        one.__annotations__["it"] = hint
        one.__defaults__ = () if default is ... else (default,)
        try:
            made = tool(one)
            schema = made.definition.input_schema
        except InvalidDefinition as refused:
            said.append(str(refused))
            continue
        assert json.dumps(schema) == json.dumps(schema_of_arguments(made._arguments))  # pyright: ignore[reportPrivateUsage]
        if default is not ... and "default" in schema["properties"]["it"]:
            assert not compile_schema(schema["properties"]["it"]).problems(default)
    assert all("of parameter 'it' is not of its type" in each for each in said)


@pytest.mark.requirement("registry.function_schema_alike")
@pytest.mark.parametrize("hint", NOT_SIMPLE, ids=str)
def test_any_other_type_is_left_to_pydantic(hint: Any):
    assert simple_schema(hint) is None


@pytest.mark.requirement("registry.function_schema_alike")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "One line.",
        "One line: with a colon in it.",
        "First\nsecond of the same.",
        "First.\n\nSecond.\n\n    indented\n- item",
        "First.\n\nArgs:\n    it: What.",
        "First.\n\n:param it: What.",
        "First.\n\nParameters\n----------\nit : str\n    What.",
        "First.\n\n@param it: What.",
        "First.\n\n.. deprecated:: 1.0\n    Old.",
    ],
)
def test_a_docstring_is_read_as_its_parser_reads_it(text: str):
    def documented(it: str) -> None: ...

    documented.__doc__ = text
    found = docstring_parser.parse(inspect.getdoc(documented) or "")
    definition = tool(documented).definition
    assert definition.description == "\n\n".join(filter(None, (found.short_description, found.long_description)))
    told = {each.arg_name: each.description for each in found.params}
    assert definition.input_schema["properties"]["it"].get("description") == told.get("it")
