"""Gemini streams: each event is a partial answer, and the last one says why the model stopped."""

from collections.abc import Sequence

from toolcrib.contracts.base.errors import ModelError
from toolcrib.llm.base.events import Done, Event
from toolcrib.llm.wires.gemini import Answer


class GeminiDecoder:
    """The `Decoder` of one stream.

    Args:
        origin: The provider's name.
    """

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._answer = Answer(origin)

    def feed(self, data: bytes) -> Sequence[Event]:
        """See `Decoder.feed`."""
        return self._answer.add(data)

    def close(self) -> Sequence[Event]:
        """See `Decoder.close`. There is no end marker: a stream that gave its finish reason is complete."""
        if not self._answer.raw_stop:
            raise ModelError(
                "stream_cut",
                f"{self._origin} ended the stream in mid-answer, after {self._answer.progress()}, "
                "without a finish reason",
            )
        return (Done(self._answer.response()),)
