"""What the expressions of a run can read: the input, the outputs of steps, and what has become of each."""

from toolcrib.contracts import Json, JsonObject
from toolcrib.contracts.workflows import SettledStep, WorkflowStep


class Scope:
    """The names and values of one run; grows as steps come to their ends.

    Args:
        arguments: What the run was asked.
    """

    def __init__(self, arguments: Json) -> None:
        self._steps: JsonObject = {}
        self.names: JsonObject = {"input": arguments, "steps": self._steps}
        """For expressions that stand in no `for_each`."""

    def settle(self, step: WorkflowStep, settled: SettledStep) -> None:
        """From now on expressions can read what has become of a step."""
        failure = None if settled.error is None else settled.error.model_dump(mode="json")
        self._steps[step.name] = {
            "status": settled.status,
            "output": settled.output,
            "error": failure,
            "items": settled.items,
            "failed": settled.failed,
        }
        # Steps that are known by one name are alternatives: what one of them has brought is not taken away by another.
        if settled.status in {"succeeded", "partial"} or step.known_as not in self.names:
            self.names[step.known_as] = settled.output

    def with_names(self, **names: Json) -> JsonObject:
        """The scope of one place, such as an element of a `for_each`."""
        return {**self.names, **names}
