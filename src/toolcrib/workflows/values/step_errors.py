"""Errors of steps, which name the step, the cause and what to do, and the size limit of values.

Steps can multiply values that share parts in memory, so a value is measured as if it were written out, up to the
limit. The failure of a tool is not made here: the envelope has it. Pure.
"""

from typing import Final

from toolcrib.contracts import ErrorCode, InvalidExpression, Json, Reason, ToolError
from toolcrib.core.executor import error
from toolcrib.core.expressions.values import is_list, is_object

MAX_MADE: Final = 16 * 2**20
"""Characters of one value, about as JSON has them."""

_SCALAR = 4
"""Characters of a number, about, with what stands around it."""


def check_size(value: Json) -> Json:
    """The value, if it is not too large.

    Raises:
        InvalidExpression: It is.
    """
    if is_too_large(value):
        raise InvalidExpression(f"the value would be longer than {MAX_MADE:,} characters; select less data first")
    return value


def is_too_large(value: Json) -> bool:
    """Whether a value would be longer than `MAX_MADE` if it were written down."""
    left, waiting = MAX_MADE, [value]
    while waiting and left >= 0:
        part = waiting.pop()
        if is_object(part):
            left -= sum(map(len, part)) + _SCALAR * (len(part) + 1)
            waiting += part.values() if left >= 0 else ()
        elif is_list(part):
            left -= len(part) + _SCALAR
            waiting += part if left >= 0 else ()
        else:
            left -= len(part) + _SCALAR if isinstance(part, str) else _SCALAR
    return left < 0


class StepFailed(Exception):
    """A step, or an element of it, cannot go on. It never leaves the stepping, which makes the step's end of it."""

    def __init__(self, error: ToolError) -> None:
        super().__init__(error.message)
        self.error = error


def fault(code: ErrorCode, reason: Reason, step: str, message: str, **details: Json) -> StepFailed:
    """A failure of a step that no tool has caused.

    Args:
        code: What callers branch on.
        reason: The finer cause.
        step: Name of the step.
        message: What is wrong with it and what to do, to be read after `step 'NAME'`.
        **details: What else programs read of it.
    """
    return StepFailed(error(code, reason, f"step {step!r} {message}", step=step, **details))


def no_value(step: str, field: str, problem: InvalidExpression) -> StepFailed:
    """An expression of a step has no value.

    Args:
        step: Name of the step.
        field: Where the expression stands, as the definition calls it.
        problem: What the evaluator says.
    """
    mend = "correct the expression, with ?. where something may be missing, and publish the workflow again"
    message = f"has no value for its {field}: {problem}; {mend}"
    return fault(ErrorCode.VALIDATION_ERROR, Reason.REFERENCE_UNRESOLVED, step, message, field=field)


def unusable(step: str, field: str, message: str) -> StepFailed:
    """A value that an expression of a step has given is not one that it can work with.

    Args:
        step: Name of the step.
        field: What the value is for, as the definition calls it.
        message: What it must be, and what it is.
    """
    text = f"cannot use its {field}: {message}"
    return fault(ErrorCode.VALIDATION_ERROR, Reason.INPUT_SCHEMA_MISMATCH, step, text, field=field)


def denial(step: str, reason: Reason, message: str, **details: Json) -> StepFailed:
    """A step may not go on, or what it names is not there."""
    return fault(ErrorCode.POLICY_DENIED, reason, step, message, **details)


def failure_of_run(step: str, failure: ToolError) -> ToolError:
    """How a run fails by one of its steps: the step's error, which names the step at any depth.

    Args:
        step: Name of the step.
        failure: Its error.
    """
    details = failure.details or {}
    if details.get("step") == step:
        return failure
    message = f"step {step!r} failed: {failure.message}"
    return failure.model_copy(update={"message": message, "details": {**details, "step": step}})
