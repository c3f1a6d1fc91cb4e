"""Handlers that come with the crib: steps that are code of ours instead of one call.

A handler is a part of the run's program. It touches the world through the run's context only, at positions that begin
with the step's, and a run that is started again calls it again: what the journal knows it gets at once. What handlers
there are is handed in; here is only what they must look like.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from toolcrib.contracts import JsonObject, ToolRevision
from toolcrib.contracts.workflows import SettledStep
from toolcrib.core.runs import RunContext

Handler: TypeAlias = Callable[[RunContext, ToolRevision, JsonObject, str], Awaitable[SettledStep]]
"""Carries out one step, or one element of its `for_each`, and tells how it has ended; a failure is an end too. It gets
the run as the one sees it who makes the step's calls; what the step names as its `tool`, as the run has pinned it; the
step's input, with values in place of expressions; and where it stands in the journal: `NAME`, or `NAME[i]`."""

Handling: TypeAlias = Callable[[RunContext], Mapping[str, Handler]]
"""The handlers of one run, by the name that steps call them by."""


def no_handlers(context: RunContext) -> Mapping[str, Handler]:
    """Of a crib that has none."""
    del context
    return {}
