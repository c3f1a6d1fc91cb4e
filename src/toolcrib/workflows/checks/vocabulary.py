"""Is a word of the workflow vocabulary usable? Checked when it is saved, as far as it can be told without a step."""

from collections.abc import Iterator

from toolcrib.contracts import InvalidDefinition, InvalidExpression
from toolcrib.contracts.workflows import BUILT_IN_HANDLERS, ConditionBinding, StepRegistration
from toolcrib.core.expressions import Template, references_of
from toolcrib.core.registry import Registry


def check_registration(registration: StepRegistration, registry: Registry, realm: str) -> None:
    """Refuse a name for a tool that no step could use.

    Raises:
        InvalidDefinition: Its name comes with the crib, or one of its mappings does not compile.
        NotFound: There is no such tool.
    """
    if registration.name in BUILT_IN_HANDLERS:
        msg = f"workflow step {registration.name!r} comes with the crib; give yours another name"
        raise InvalidDefinition(msg)
    registry.require(realm, registration.tool)
    for field in ("input_mapping", "output_mapping"):
        try:
            references_of(getattr(registration, field))
        except InvalidExpression as problem:
            msg = f"workflow step {registration.name!r}: {field}: {problem}"
            raise InvalidDefinition(msg) from problem


def check_condition(condition: ConditionBinding) -> None:
    """Refuse a condition that is not one expression over its parameters.

    Raises:
        InvalidDefinition: Names the condition, what is wrong and what to do.
    """
    problem = next(_condition_problems(condition), None)
    if problem is not None:
        raise InvalidDefinition(f"condition {condition.name!r}: {problem}")


def _condition_problems(condition: ConditionBinding) -> Iterator[str]:
    if len(set(condition.parameters)) < len(condition.parameters):
        yield f"two of its parameters have one name: {', '.join(condition.parameters)}; give each its own"
    try:
        template = Template.parse(condition.expression, "${}")
        template.check(condition.parameters)
    except InvalidExpression as problem:
        yield f"expression: {problem}"
        return
    if len(template.parts) != 1 or not template.placeholders:
        yield f"{condition.expression!r} is not one expression; write it as ${{…}}, and nothing beside it"
    unread = set(condition.parameters) - {reference.partition(".")[0] for reference in template.references}
    if unread:
        yield f"its expression does not read {', '.join(sorted(unread))}; take it out of the parameters"
