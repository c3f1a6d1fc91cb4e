"""Types of the outputs of steps, and of everything else that expressions read by name.

A step that may be skipped can be null. Readers are warned, unless their own condition has checked it, or they are
skipped together with it.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Final, get_args

from toolcrib.contracts import AgentImplementation, ErrorCode, InvalidExpression, JsonSchema, ToolRevision
from toolcrib.contracts.workflows import AGENTIC_HANDLERS, StepStatus, WorkflowStep
from toolcrib.core.expressions import references_of
from toolcrib.core.expressions.values import is_list, is_object
from toolcrib.workflows.checks.structure.cycles import order_steps
from toolcrib.workflows.checks.structure.prepared_definition import Layout
from toolcrib.workflows.checks.types.value_types import (
    ANYTHING,
    INTEGER,
    STRING,
    Form,
    Made,
    Shape,
    constant,
    is_known,
    list_shape,
    object_shape,
    of_kinds,
    or_null,
    schema_shape,
    union_of,
)

NULL: Final = constant(None)
_STATUSES: Final = union_of(map(constant, get_args(StepStatus)))
ERROR: Final = object_shape(
    {
        "code": union_of(constant(str(code)) for code in ErrorCode),
        "message": STRING,
        "details": or_null(of_kinds("object")),
        "retry_after_s": or_null(of_kinds("integer", "fraction")),
        "step": STRING,
    }
)
"""What a step reads as `error` that another one has gone to."""


class Outputs:
    """The shapes of one definition, as far as its steps were looked at in their order.

    Args:
        layout: The definition.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._by_step: dict[str, Shape] = {}
        self._tools: dict[str, Shape] = {}
        self._argument_shapes: dict[str, Shape] = {}
        self.input = schema_shape(_with_defaults(layout.definition.input_schema))

    def keep(self, step: WorkflowStep, shape: Shape) -> None:
        """From now on a step is known to put out, once, a value of this shape."""
        each = step.for_each
        if each is not None:
            shape = list_shape(or_null(shape) if each.on_item_error == "continue" else shape)
        self._by_step[step.name] = shape

    def raw_output(self, step: WorkflowStep) -> Shape:
        """What a step's own `output` reads as `output`: what has come of it once."""
        tool = self._layout.callee(step)
        if tool is not None and step.handler_ref not in AGENTIC_HANDLERS:
            return self._model_output(step, tool) if tool.definition.has_model else self._tool_output(tool)
        if step.approval is not None:
            shown = dict.fromkeys(step.approval.show, ANYTHING)
            return object_shape(shown, optional=shown)  # a person may have changed what is in it
        if step.wait is not None and step.wait.signal is None:
            return NULL
        return ANYTHING

    def argument_shape(self, tool: ToolRevision) -> Shape:
        """What a tool takes as its arguments."""
        if tool.content_hash not in self._argument_shapes:
            self._argument_shapes[tool.content_hash] = schema_shape(tool.definition.input_schema)
        return self._argument_shapes[tool.content_hash]

    def final_output(self, step: WorkflowStep) -> Shape:
        """What the output of a workflow has of a step that nothing waits for, if it does not say it itself."""
        tool = self._layout.callee(step)
        shape = ANYTHING if tool is not None and tool.definition.has_model else self.put_out(step)
        return shape if step.name in self.certain else or_null(shape)

    def put_out(self, step: WorkflowStep) -> Shape:
        """What a step puts out, if it comes to its end."""
        return self._by_step.get(step.name, ANYTHING)

    def output_by_name(self, name: str, reader: WorkflowStep | None) -> Shape | None:
        """What is read under a name that leads to steps; null if none does.

        Args:
            name: The name.
            reader: The step that reads it; null for the output of the workflow.
        """
        steps = self._layout.known.get(name)
        if steps is None:
            return None
        if len(steps) > 1:
            return (*union_of(map(self.put_out, steps)), *NULL)
        return self.visible_output(steps[0], reader)

    def visible_output(self, step: WorkflowStep, reader: WorkflowStep | None) -> Shape:
        """What another step, or the output of the workflow, reads of a step."""
        shape = self.put_out(step)
        if reader is not None and _looks_at(reader, step):
            shape = _as_looked_at(shape)
        why = self._why_missing(step, reader)
        if why is not None and self._is_always_there(step):
            return union_of(_without_output(form, why) for form in shape)
        if why is not None:
            return or_null(shape, why)
        is_left_out_too = reader is not None and reader.join == "all"
        return shape if is_left_out_too or step.name in self.certain else or_null(shape)

    def states(self, reader: WorkflowStep | None) -> Shape:
        """What is read as `steps`."""
        return object_shape(_States(self, self._layout.by_name, reader))

    @cached_property
    def certain(self) -> frozenset[str]:
        """Names of the steps that have succeeded in every run that comes to its end."""
        before: dict[str, list[str]] = {}
        for edge in self._layout.edges:
            before.setdefault(edge.target, []).append(edge.source)
        found: set[str] = set()
        for name in order_steps(self._layout):
            step = self._layout.by_name[name]
            alone = step.condition is None and name not in self._layout.gone_to and step.on_error == "fail"
            if alone and all(source in found for source in before.get(name, ())):
                found.add(name)
        return frozenset(found)

    def _tool_output(self, tool: ToolRevision) -> Shape:
        if tool.content_hash not in self._tools:
            self._tools[tool.content_hash] = schema_shape(tool.definition.output_schema)
        return self._tools[tool.content_hash]

    def _model_output(self, step: WorkflowStep, tool: ToolRevision) -> Shape:
        """The stable outputs of a step that asks a model, beside what that puts out itself."""
        implementation, whole = tool.definition.implementation, self._tool_output(tool)
        if not isinstance(implementation, AgentImplementation) and not is_known(whole):
            return ANYTHING
        own = {name: member for form in whole for name in form.names if (member := form.member(name))}
        pins = [*(implementation.pins if isinstance(implementation, AgentImplementation) else ()), *step.pins]
        stable = {
            "output": own.get("output", ANYTHING) if isinstance(implementation, AgentImplementation) else whole,
            "response": STRING,
            "tools_by_id": of_kinds("object"),
            "tool_order": list_shape(STRING),
            "last_tool": or_null(of_kinds("object"), f"no call of {step.name!r} succeeds"),
            "traces_url": or_null(STRING),
            "handles": object_shape({pin.name: ANYTHING for pin in pins}),
        }
        return object_shape({**own, **stable}, optional=own.keys() - stable.keys())

    def _is_always_there(self, step: WorkflowStep) -> bool:
        """Whether a step has stable outputs whatever has become of it."""
        tool = self._layout.callee(step)
        has_model = tool is not None and tool.definition.has_model and step.handler_ref not in AGENTIC_HANDLERS
        return has_model and step.output is None and step.for_each is None

    def _why_missing(self, step: WorkflowStep, reader: WorkflowStep | None) -> str | None:
        """Why there may be no output of a step that comes to its end; null if there is, or the reader knows."""
        if reader is not None and (reader.condition == step.condition or _looks_at(reader, step)):
            return None
        if step.condition is not None:
            return f"step {step.name!r} is left out"
        if step.name in self._layout.gone_to and (reader is None or reader.join != "all"):
            return f"no step goes to {step.name!r}"
        return f"step {step.name!r} fails" if step.on_error == "continue" else None


def _with_defaults(schema: JsonSchema) -> JsonSchema:
    """A schema of arguments as a run reads them: what has a default is there."""
    properties, required = schema.get("properties"), schema.get("required", [])
    if not is_object(properties) or not is_list(required):
        return schema
    filled = [name for name, part in properties.items() if is_object(part) and "default" in part]
    return {**schema, "required": [*required, *(name for name in filled if name not in required)]}


def _as_looked_at(shape: Shape) -> Shape:
    """The outputs of a step for a reader whose condition has looked at them: it knows of the last call."""
    return union_of(
        object_shape({**form.members, "last_tool": ANYTHING}, form.optional)
        if isinstance(form, Made) and form.members is not None and "last_tool" in form.members
        else (form,)
        for form in shape
    )


def _without_output(form: Form, why: str) -> Shape:
    """The stable outputs of a step that asks a model, which has perhaps not been asked."""
    if not isinstance(form, Made) or form.members is None:
        return (form,)
    return object_shape({**form.members, "output": or_null(form.members["output"], why)}, form.optional)


class _States(Mapping[str, Shape]):
    """What has become of each step; made when it is asked for."""

    def __init__(self, outputs: Outputs, steps: Mapping[str, WorkflowStep], reader: WorkflowStep | None) -> None:
        self._outputs = outputs
        self._steps = steps
        self._reader = reader

    def __getitem__(self, name: str) -> Shape:
        step = self._steps[name]
        return object_shape(
            {
                "status": _STATUSES,
                "reason": or_null(STRING),
                "output": self._outputs.visible_output(step, self._reader),
                "error": or_null(ERROR),
                "tries": INTEGER,
                "items": or_null(INTEGER),
                "failed": INTEGER,
                "errors": list_shape(ANYTHING),
            }
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._steps)

    def __len__(self) -> int:
        return len(self._steps)


def _looks_at(reader: WorkflowStep, step: WorkflowStep) -> bool:
    """Whether the condition of a step reads another one, so that it only runs if that is as it should be."""
    condition = reader.condition
    if condition is None:
        return False
    try:
        read = references_of(condition if isinstance(condition, str) else condition.input)
    except InvalidExpression:
        return False
    names = {".".join(reference.split(".")[:2]) for reference in read} | {one.partition(".")[0] for one in read}
    return step.known_as in names or f"steps.{step.name}" in names
