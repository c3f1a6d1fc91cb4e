"""The answers of a recorded run as a model, for running it again for real: the same decisions on another world."""

from collections.abc import Iterable

import orjson

from toolcrib.contracts import InvalidInput, ModelError, ModelFailed, ModelFinished, ModelStarted, RunEvent
from toolcrib.llm import Response, ScriptedModel, decode_response


def recorded_model(events: Iterable[RunEvent]) -> ScriptedModel:
    """A model that answers what the model of a run answered, in the order in which it was asked.

    Args:
        events: Of one run; or of several, such as the turns of a conversation, one after the other.

    Raises:
        InvalidInput: A model call has neither an answer nor a final failure.
    """
    outcomes: dict[tuple[str, str], Response | ModelError | None] = {}
    for entry in events:
        match entry.event:
            case ModelStarted(position=position):
                outcomes.setdefault((entry.run_id, position), None)
            case ModelFinished() as event:
                outcomes[entry.run_id, event.position] = decode_response(orjson.dumps(event.response))
            case ModelFailed(retry_in_s=None) as event:
                outcomes[entry.run_id, event.position] = ModelError(event.kind, event.message, status=event.status)
            case _:
                pass
    answers: list[Response | ModelError] = []
    for (run_id, position), outcome in outcomes.items():
        if outcome is None:
            msg = f"run {run_id} has no answer to its model call {position!r}; resume it until it has ended"
            raise InvalidInput(msg)
        answers.append(outcome)
    return ScriptedModel(answers, name="recorded")
