"""pydantic-ai: the tools of a crib as a toolset, and pydantic-ai's toolsets in a crib.

from toolcrib import pydantic_ai

agent = Agent(model, toolsets=[pydantic_ai.CribToolset(crib.acting_as(ann), "search_deals")])
crib.add(*await pydantic_ai.tools(FunctionToolset([exchange_rate]), side_effects="reads"))
"""

from dataclasses import dataclass
from typing import Any, Unpack

from toolcrib.contracts import ErrorCode, InvalidDefinition, InvalidSettings, NotFound
from toolcrib.contracts.base.errors import missing_extra
from toolcrib.core.export import describe
from toolcrib.crib import ActingCrib
from toolcrib.interfaces.adapters.calling import HomeLoop, OfferedTool, call_offered, find_offered
from toolcrib.interfaces.adapters.inward import adopt
from toolcrib.kinds.python.functions import FunctionTool, ToolOptions

try:
    from pydantic_ai import RunContext
    from pydantic_ai.exceptions import ModelRetry, ToolFailed
    from pydantic_ai.messages import ToolReturn
    from pydantic_ai.models.test import TestModel
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
    from pydantic_ai.usage import RunUsage
    from pydantic_core import SchemaValidator, core_schema
except ModuleNotFoundError as problem:
    raise InvalidSettings(missing_extra("the adapter for pydantic-ai", problem.name, "pydantic-ai")) from problem

_ANY = SchemaValidator(core_schema.any_schema())
"""The crib checks arguments."""
_RETRIES = 2
"""Corrections of wrong arguments that a model may try."""


@dataclass(kw_only=True)
class _CribTool(ToolsetTool[Any]):
    """A tool of a step, which knows what it was when it was offered."""

    offered: OfferedTool


class CribToolset(AbstractToolset[Any]):
    """The tools of a crib, each call of which is a run of the crib's principal.

    What the principal may execute is looked up at each step of an agent. A model is asked to correct arguments that are
    not valid; every other failure is told as `CODE: message`. The `metadata` of a result is the call's envelope.

    Args:
        crib: A crib, or `crib.acting_as(principal)`.
        *names: `name` or `name@range`; if none is given, every tool that the principal may execute.
        id: As pydantic-ai's durable engines need one.

    Example:
        from pydantic_ai import Agent
        from pydantic_ai.models.test import TestModel
        from toolcrib import pydantic_ai

        agent = Agent(TestModel(), toolsets=[pydantic_ai.CribToolset(crib, "search_deals")])
        print((await agent.run("Which deals has Acme?")).output)
    """

    def __init__(self, crib: ActingCrib, *names: str, id: str | None = None) -> None:  # noqa: A002 - pydantic-ai's name
        self._crib = crib
        self._names = names
        self._id = id
        self._home: HomeLoop | None = None

    @property
    def id(self) -> str | None:
        """The id that was given."""
        return self._id

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """The tools that the principal may execute now.

        Raises:
            NotFound: There is no such tool, or the principal may not execute it.
        """
        self._home = self._home or HomeLoop()
        found = await self._home.run(lambda: find_offered(self._crib, self._names))
        return {offered.name: self._tool(offered) for offered in found}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Call a tool, as pydantic-ai's agents do."""
        if self._home is None or not isinstance(tool, _CribTool):
            raise NotFound(f"tool {name!r} is not one that get_tools of this toolset has returned")
        answer = await self._home.run(lambda: call_offered(self._crib, tool.offered, tool_args))
        if answer.ok:
            return ToolReturn(return_value=answer.output, metadata=answer.envelope)
        if answer.code == ErrorCode.VALIDATION_ERROR:
            raise ModelRetry(answer.explanation)
        raise ToolFailed(answer.explanation)

    def _tool(self, offered: OfferedTool) -> _CribTool:
        definition = offered.tool.definition
        described = ToolDefinition(
            name=offered.name,
            description=describe(definition),
            parameters_json_schema={"type": "object", "properties": {}, **definition.input_schema},
            sequential=definition.sequential,
            metadata={"toolcrib": offered.tool.ref},
        )
        return _CribTool(toolset=self, tool_def=described, max_retries=_RETRIES, args_validator=_ANY, offered=offered)


async def tools(
    toolset: AbstractToolset[Any], *, deps: Any = None, **options: Unpack[ToolOptions]
) -> list[FunctionTool[..., Any]]:
    """The tools of a toolset as tools of a crib, governed like all others.

    What a tool raises is the error of its call. Tools whose result comes from outside (`external`), or that wait for an
    approval of pydantic-ai's, are refused: a crib has approvals of its own. The toolset must be open while they are
    called, if it is one that connects.

    Args:
        toolset: For example a `FunctionToolset`.
        deps: What tools with a `RunContext` get as `ctx.deps`. It has no model of an agent.
        **options: As for `toolcrib.tool`, for each of them.

    Raises:
        InvalidDefinition: A tool cannot be called outside of an agent of pydantic-ai.

    Example:
        from pydantic_ai.toolsets import FunctionToolset
        from toolcrib import pydantic_ai

        def exchange_rate(currency: str) -> float:
            "Look up a rate."
            return 1.1

        crib.add(*await pydantic_ai.tools(FunctionToolset([exchange_rate]), side_effects="reads"))
        print((await crib.call("exchange_rate", currency="USD")).output)
    """
    context = RunContext(deps=deps, model=TestModel(), usage=RunUsage())
    found = await toolset.get_tools(context)
    return [_inward(toolset, one, context, options) for one in found.values()]


def _inward(
    toolset: AbstractToolset[Any], original: ToolsetTool[Any], context: RunContext[Any], options: ToolOptions
) -> FunctionTool[..., Any]:
    described = original.tool_def
    if described.kind != "function":
        msg = (
            f"tool {described.name!r} is of kind {described.kind!r}; only functions run outside of pydantic-ai's agents"
        )
        raise InvalidDefinition(msg)

    async def call(**arguments: Any) -> Any:
        values = original.args_validator.validate_python(arguments, context=None)
        returned = await toolset.call_tool(described.name, values, context, original)
        return returned.return_value if isinstance(returned, ToolReturn) else returned

    return adopt(
        call,
        toolset,
        name=described.name,
        description=(described.description or "").strip(),
        schema=described.parameters_json_schema,
        options=options,
    )
