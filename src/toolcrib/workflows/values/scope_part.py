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
        self._ok: set[str] = set()
        self.names: JsonObject = {"input": arguments, "steps": self._steps}
        """For expressions that stand in no `for_each`."""

    def settle(self, step: WorkflowStep, settled: SettledStep, shown: Json) -> None:
        """From now on expressions can read what has become of a step.

        Args:
            step: The step.
            settled: How it has ended.
            shown: What they read under its name.
        """
        failure = None if settled.error is None else settled.error.model_dump(mode="json")
        self._steps[step.name] = {
            "status": settled.status,
            "reason": settled.reason,
            "output": settled.output,
            "error": failure,
            "tries": settled.tries,
            "items": settled.items,
            "failed": settled.failed,
            "errors": [error.model_dump(mode="json") for error in settled.errors],
        }
        if settled.ok:
            self._ok.add(step.name)
        # Steps that are known by one name are alternatives: what one of them has brought is not taken away by another.
        if settled.ok or step.known_as not in self.names:
            self.names[step.known_as] = shown

    def has_output(self, name: str) -> bool:
        """Whether a step has put out something."""
        return name in self._ok

    def with_error(self, origin: str) -> JsonObject:
        """The names for a step that another one has gone to.

        Args:
            origin: The step that has failed, which they read as `error`.
        """
        return {**self.names, "error": {**self._steps[origin]["error"], "step": origin}}
