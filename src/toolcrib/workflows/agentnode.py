"""The output of a step that asks an agent: what later steps read of the call that the step made.

It is made here and nowhere else, of the envelope of the call and of what the run's journal knows.
"""

from toolcrib.contracts import Json, ToolEnvelope, ToolRevision
from toolcrib.contracts.workflows import WorkflowStep
from toolcrib.runs import RunContext


async def node_output(context: RunContext, step: WorkflowStep, tool: ToolRevision, envelope: ToolEnvelope) -> Json:
    """What a step puts out whose call has succeeded.

    Args:
        context: Of the run.
        step: The step.
        tool: What it called, an agent or any other tool.
        envelope: Of the call.
    """
    del context, step, tool
    return envelope.output
