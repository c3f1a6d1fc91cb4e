"""Checks what the expressions of a definition read, and whether their values fit.

Steps are checked in order, so that the types of what they read are known. A value is an error only if it can never
fit; if it may not fit, it is at most a warning.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from toolcrib.contracts import InvalidExpression, Json, escape_name
from toolcrib.contracts.workflows import (
    AGENT_HANDLERS,
    BUILT_IN_HANDLERS,
    ConditionUse,
    WorkflowProblem,
    WorkflowStep,
)
from toolcrib.core.expressions import Template, references_of
from toolcrib.core.expressions.template import MAX_NESTING, Placeholder
from toolcrib.core.expressions.values import is_list, is_object
from toolcrib.core.registry.schema.value_facts import NUMBERS
from toolcrib.workflows.checks.structure.cycles import order_steps
from toolcrib.workflows.checks.structure.prepared_definition import Layout
from toolcrib.workflows.checks.types.expression_types import ExpressionProblem, Reader
from toolcrib.workflows.checks.types.outputs import ERROR, Outputs
from toolcrib.workflows.checks.types.value_types import (
    ANYTHING,
    INTEGER,
    STRING,
    Described,
    Form,
    Shape,
    constant,
    is_known,
    is_only,
    items_in,
    kinds_in,
    list_shape,
    object_shape,
    schema_shape,
    spoken,
    union_of,
)

_DEEPEST: Final = 6
_SCALARS: Final = frozenset({"string", "boolean", *NUMBERS})
_MOST_VALUES: Final = 6


def misfit(given: Shape, wanted: Shape, what: str, taker: str) -> ExpressionProblem | None:
    """Why what is given cannot be what is wanted, or may not be; null if it can.

    Args:
        given: The known shape of the value.
        wanted: The accepted shape.
        what: The value, as named in a message.
        taker: What accepts it, as named in a message.
    """
    if not given or not wanted:
        return None
    if all(_are_apart(one, other, 0) for one in given for other in wanted):
        return ExpressionProblem(
            f"{what} is {_words(given, wanted)}, and {taker} accepts {_words(wanted, given)}", _instead(given, wanted)
        )
    why = next((form.why_null for form in given if form.why_null is not None), None)
    if (why or is_known(given)) and "null" in kinds_in(given) - kinds_in(wanted):
        condition = f" if {why}" if why else ""
        return ExpressionProblem(
            f"{what} may be null{condition}, and {taker} does not accept null",
            "write ${… ?? otherwise}",
            is_error=False,
        )
    return _item_misfit(given, wanted, what, taker)


def _item_misfit(given: Shape, wanted: Shape, what: str, taker: str) -> ExpressionProblem | None:
    """Lists whose elements never fit: only an empty one would."""
    if not is_only(kinds_in(given), "array") or "array" not in kinds_in(wanted):
        return None
    found = misfit(items_in(given), items_in(wanted), f"an element of {what}", taker)
    return None if found is None else found._replace(is_error=False)


def _are_apart(one: Form, other: Form, depth: int) -> bool:
    """Whether no value has both forms."""
    if not one.kinds & other.kinds:
        return True
    if one.values is not None and other.values is not None:
        return not one.values & other.values
    if depth == _DEEPEST or not is_only(one.kinds, "object") or not is_only(other.kinds, "object"):
        return False
    return any(_member_apart(one, other, name, depth) for name in sorted(one.required | other.required))


def _member_apart(one: Form, other: Form, name: str, depth: int) -> bool:
    """Whether an object that is given, and has one form, needs a member in the way of the other that is wanted."""
    mine, theirs = one.member(name), other.member(name)
    if mine is None:
        return name in other.required
    if theirs is None:  # what is not declared is taken all the same, unless the schema says that it is not
        return name in one.required and isinstance(other, Described) and other.refuses_others
    if name not in one.required or name not in other.required or not mine or not theirs:
        return False
    return all(_are_apart(first, second, depth + 1) for first in mine for second in theirs)


def _words(shape: Shape, beside: Shape) -> str:
    """What a value is, in words: its types, or its values where the types are the same."""
    kinds = kinds_in(shape)
    values = [value for form in shape if form.values is not None for value in form.values]
    if values and kinds & kinds_in(beside):
        shown = ", ".join(sorted(value.decode() for value in values)[:_MOST_VALUES])
        return f"one of {shown}" if len(values) > 1 else shown
    if is_only(kinds, "object") and is_only(kinds_in(beside), "object"):
        names = dict.fromkeys(name for form in shape for name in (*form.required, *form.names))
        return f"an object with {', '.join(list(names)[:_MOST_VALUES]) or 'no members'}"
    return spoken(shape)


def _instead(given: Shape, wanted: Shape) -> str | None:
    have, want = kinds_in(given) - {"null"}, kinds_in(wanted) - {"null"}
    if is_only(have, "array") and "array" not in want:
        return "take one element, or let the step run for_each of them"
    if is_only(want, "array") and have & _SCALARS:
        return "put it into a list: [${…}]"
    if is_only(want, "string") and have <= _SCALARS:
        return "make a text of it: ${string(…)}"
    if want <= NUMBERS and is_only(have, "string"):
        return "make a number of it: ${number(…)}"
    if is_only(have, "object"):
        return "read one of its fields"
    return None


_LONGEST: Final = 100
_WHERE: Final[Mapping[str, str]] = {
    "item": "only a step with a for_each can read its element",
    "index": "only a step with a for_each can read the index of its element",
    "output": "only the output of a step that calls, waits or asks can read it",
    "error": "only a step that another one goes to on failure can read it",
}
"""Names that are not everywhere, and where they are."""
_FOR_EACH: Final = (
    "it is evaluated once for all elements; run a workflow for_each of them, with the condition in its step"
)
"""What to do instead of a condition on an element."""


class ExpressionSite(NamedTuple):
    """Where expressions stand."""

    step: WorkflowStep | None
    """Null for the output of the workflow."""
    path: str
    """JSON pointer into the definition."""
    near: Mapping[str, Shape]
    """Names that are read here and not everywhere."""

    def at(self, *names: str | int, near: Mapping[str, Shape] | None = None) -> "ExpressionSite":
        """A place below this one.

        Args:
            *names: The way to it.
            near: More names that are read there.
        """
        path = self.path + "".join(f"/{escape_name(str(name))}" for name in names)
        return ExpressionSite(self.step, path, {**self.near, **(near or {})})


class Expressions:
    """Reads the expressions of one definition.

    Args:
        layout: The definition.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._outputs = Outputs(layout)
        self._problems: list[WorkflowProblem] = []
        self.output: Shape = ANYTHING
        """What the workflow puts out, after `problems`."""

    def problems(self) -> Sequence[WorkflowProblem]:
        """What is wrong with them, in the order of the definition."""
        layout = self._layout
        in_order = [layout.by_name[name] for name in order_steps(layout)]
        done = set(map(id, in_order))
        for step in (*in_order, *(step for step in layout.steps if id(step) not in done)):
            self._step(step)
        self._workflow()
        behind = len(layout.steps)
        return sorted(self._problems, key=lambda problem: layout.places.get(problem.step or "", behind))

    # Steps ------------------------------------------------------------------------------------------------------------

    def _step(self, step: WorkflowStep) -> None:
        here = ExpressionSite(
            step, self._layout.path(step), {"error": ERROR} if step.name in self._layout.gone_to else {}
        )
        self._condition(step, here)
        if step.for_each is not None:
            items = self._single(step.for_each.items, here.at("for_each", "items"))
            if items and "array" not in kinds_in(items):
                message = f"{step.for_each.items} is not a list"
                self._tell(here.at("for_each", "items"), ExpressionProblem(message, "name a list, or write [value]"))
            here = here.at(near={"item": items_in(items), "index": INTEGER})
        self._arguments(step, here)
        if step.wait is not None:
            self._structure(step.wait.seconds, here.at("wait", "seconds"))
            self._structure(step.wait.until, here.at("wait", "until"))
        if step.approval is not None:
            self._structure(step.approval.message, here.at("approval", "message"))
            self._structure(step.approval.show, here.at("approval", "show"))
        self._outputs.keep(step, self._put_out(step, here))

    def _condition(self, step: WorkflowStep, here: ExpressionSite) -> None:
        if isinstance(step.condition, str):
            self._single(step.condition, here.at("condition"))
        elif isinstance(step.condition, ConditionUse):
            given = self._members(step.condition.input, here.at("condition", "input"))
            bound = self._layout.implementation.conditions.get(step.condition.ref)
            if bound is not None:
                parameters = {name: given.get(name, ANYTHING) for name in bound.parameters}
                self._single(bound.expression, ExpressionSite(step, here.at("condition", "ref").path, parameters))

    def _arguments(self, step: WorkflowStep, here: ExpressionSite) -> None:
        context = step.input.get("context")
        shared: Mapping[str, Shape] = {}
        if step.handler_ref in AGENT_HANDLERS and is_object(context):
            shared = self._members(context, here.at("input", "context"))
        given: dict[str, Shape] = {}
        for name, value in step.input.items():
            if name != "context" or not shared:
                near_it = shared if name == "prompt" else {}
                given[name] = self._structure(value, here.at("input", name, near=near_it))
        registered = self._layout.implementation.handlers.get(step.handler_ref or "")
        if registered is not None:
            for name, value in registered.input_mapping.items():
                if name not in given:
                    given[name] = self._structure(value, here.at("handler_ref"))
        if step.handler_ref not in BUILT_IN_HANDLERS:
            self._fit(step, given, here)

    def _fit(self, step: WorkflowStep, given: Mapping[str, Shape], here: ExpressionSite) -> None:
        """Hold arguments against what the tool of a step takes."""
        tool = self._layout.callee(step)
        if tool is None:
            return
        parameters = self._outputs.argument_shape(tool)
        for name, shape in given.items():
            wanted = union_of(form.member(name) or () for form in parameters)
            finding = misfit(shape, wanted, _short_text(step.input.get(name)), f"argument {name!r} of {tool.name!r}")
            if finding is not None:
                self._tell(here.at("input", name) if name in step.input else here.at("handler_ref"), finding)

    def _put_out(self, step: WorkflowStep, here: ExpressionSite) -> Shape:
        """What a step puts out once."""
        registered = self._layout.implementation.handlers.get(step.handler_ref or "")
        if step.kind == "value":
            return self._structure(step.output, here.at("output"))
        output = self._outputs.raw_output(step)
        own = here.at("output", near={"output": output})
        if step.output is not None:
            return self._structure(step.output, own)
        if registered is not None and registered.output_mapping:
            return self._structure(registered.output_mapping, here.at("handler_ref", near={"output": output}))
        return output

    def _workflow(self) -> None:
        """The output of the workflow, against what it says of it."""
        layout = self._layout
        here = ExpressionSite(None, "/output", {})
        if layout.definition.output is not None:
            self.output = self._structure(layout.definition.output, here)
        else:
            self.output = object_shape({step.name: self._outputs.final_output(step) for step in layout.ends})
        wanted = schema_shape(layout.definition.output_schema)
        finding = misfit(self.output, wanted, "the output", "output_schema")
        if finding is not None:
            self._tell(here, finding)

    # Expressions ------------------------------------------------------------------------------------------------------

    def _members(self, value: Mapping[str, Json], here: ExpressionSite) -> Mapping[str, Shape]:
        return {name: self._structure(member, here.at(name)) for name, member in value.items()}

    def _structure(self, value: Json, here: ExpressionSite, depth: int = 0) -> Shape:
        """What a JSON structure with expressions in it gives."""
        if isinstance(value, str):
            return self._text(value, here)
        if depth > MAX_NESTING:
            self._tell(here, ExpressionProblem(f"structure is nested deeper than {MAX_NESTING} levels", "flatten it"))
            return ANYTHING
        if is_object(value):
            return object_shape(
                {name: self._structure(member, here.at(name), depth + 1) for name, member in value.items()}
            )
        if is_list(value):
            return list_shape(
                union_of([self._structure(one, here.at(place), depth + 1) for place, one in enumerate(value)])
            )
        return constant(value)

    def _single(self, text: str, here: ExpressionSite) -> Shape:
        """What a text gives that must be one expression and nothing else."""
        shape = self._text(text, here)
        if not (text.startswith("${") and text.endswith("}")):
            message = f"{text!r} is not one expression"
            self._tell(here, ExpressionProblem(message, "write it as ${…}, and nothing else"))
        return shape

    def _text(self, text: str, here: ExpressionSite) -> Shape:
        if "${" not in text:
            return constant(text)
        try:
            template = Template.parse(text, "${}")
        except InvalidExpression as problem:
            self._tell(here, ExpressionProblem(str(problem)))
            return ANYTHING
        shapes = [self._expression(found, here) for found in template.placeholders]
        return shapes[0] if len(template.parts) == len(shapes) == 1 else STRING

    def _expression(self, found: Placeholder, here: ExpressionSite) -> Shape:
        for reference in sorted(found.expression.references):
            finding = self._unreadable(reference, found.source, here)
            if finding is not None:
                self._tell(here, finding._replace(reference=reference))
        reader = Reader(
            names=lambda name: self._shape_of_name(name, here),
            near=self._layout.nearest.near,
            text=found.source,
            may_lack_input=here.path.endswith("/condition") or not _looks_at_input(here.step),
        )
        shape = reader.shape(found.expression.tree)
        for finding in reader.found:
            self._tell(here, finding)
        return shape

    def _shape_of_name(self, name: str, here: ExpressionSite) -> Shape | None:
        if name in here.near:
            return here.near[name]
        if name == "input":
            return self._outputs.input
        if name == "steps":
            return self._outputs.states(here.step)
        return self._outputs.output_by_name(name, here.step)

    def _unreadable(self, reference: str, source: str, here: ExpressionSite) -> ExpressionProblem | None:
        """Why something that an expression reads cannot be read here at all."""
        name, _, rest = reference.partition(".")
        step, layout = here.step, self._layout
        if name in here.near or name == "input":
            return None
        if name == "steps":
            if not rest:
                return ExpressionProblem(
                    f"{source} reads steps without a name", "write steps.NAME: the graph must be known"
                )
            itself = step is not None and rest.partition(".")[0] == step.name
            return ExpressionProblem(f"{source} reads the result of the step itself") if itself else None
        if name in _WHERE:
            is_of_all = name in {"item", "index"} and step is not None and step.for_each is not None
            message = f"{source} reads {name!r}, which is not available here: {_WHERE[name]}"
            return ExpressionProblem(message, _FOR_EACH if is_of_all and here.path.endswith("/condition") else None)
        known = layout.known.get(name)
        if known is None:
            saved = layout.by_name.get(name)
            instead = (
                layout.nearest.near(name, ["input", *layout.known])
                if saved is None
                else f"read it as {saved.known_as!r}"
            )
            return ExpressionProblem(f"{source} reads {name!r}, which does not exist", instead)
        if known == [step]:
            return ExpressionProblem(f"{source} reads the output of the step itself", "read its output as 'output'")
        return None

    def _tell(self, here: ExpressionSite, finding: ExpressionProblem) -> None:
        step = None if here.step is None else here.step.name
        problem = WorkflowProblem(
            path=here.path,
            message=finding.message,
            suggestion=finding.suggestion,
            is_error=finding.is_error,
            step=step,
            reference=finding.reference,
        )
        self._problems.append(problem)


def _looks_at_input(step: WorkflowStep | None) -> bool:
    """Whether the condition of a step reads the input, so that the step only runs if that is as it should be."""
    if step is None or not isinstance(step.condition, str):
        return False
    try:
        read = references_of(step.condition)
    except InvalidExpression:
        return False  # which is told where it stands
    return any(reference.partition(".")[0] == "input" for reference in read)


def _short_text(value: Json) -> str:
    """A value as a message says it."""
    text = value if isinstance(value, str) else "the value"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
