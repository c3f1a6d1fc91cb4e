"""The traceback of an exception that a tool raised: logged and kept in the journal, and never shown to a model.

It holds the exception's message and lines of source code. Secrets of the call are redacted, and content filters apply,
as in the call's error.
"""

import logging
import traceback
from pathlib import Path
from types import TracebackType
from typing import Final

from toolcrib.core.executor.envelope import EnvelopeBuilder, legible
from toolcrib.core.policy import screen

_logger = logging.getLogger("toolcrib.tools")
_LONGEST: Final = 20_000
"""Characters that are kept."""
_HEAD: Final = 2_000
"""Of them those from the beginning, where the first calls are; the rest are from the end, where it was raised."""
_STANDARD: Final = Path(logging.__file__).parents[1]
_OURS: Final = tuple(map(str, (Path(__file__).parents[2], _STANDARD / "asyncio", _STANDARD / "concurrent")))
"""Folders whose frames are left out above the tool's own."""


def keep_traceback(crash: BaseException, builder: EnvelopeBuilder) -> None:
    """Log an exception of a tool, and have the journal keep its traceback with the outcome of the call.

    Args:
        crash: The exception, as it was caught.
        builder: Of the call.
    """
    context, position = builder.context, builder.call.position
    plain = _bounded(legible("".join(_lines(crash))))
    text = _screened(builder, builder.redactor.text(plain))
    context.journal.keep_traceback(position, text)
    last = traceback.extract_tb(crash.__traceback__)[-1]
    record = _logger.makeRecord(
        _logger.name,
        logging.WARNING,
        last.filename,
        last.lineno or 0,
        "run %s, call %s: tool %r at %s raised %s in %s, line %s",
        (context.run_id, builder.call_id, builder.name, position, type(crash).__name__, last.filename, last.lineno),
        (type(crash), crash, crash.__traceback__) if text == plain else None,
        extra={"run_id": context.run_id, "call_id": builder.call_id, "tool": builder.name},
    )
    record.exc_text = text  # what formatters print instead of formatting the exception themselves
    if _logger.isEnabledFor(logging.WARNING):
        _logger.handle(record)


def _lines(crash: BaseException) -> list[str]:
    return traceback.format_exception(type(crash), crash, _without_ours(crash.__traceback__))


def _without_ours(frames: TracebackType | None) -> TracebackType | None:
    """The frames from the first that is the tool's; all of them if none is."""
    found = frames
    while found is not None and found.tb_frame.f_code.co_filename.startswith(_OURS):
        found = found.tb_next
    return found or frames


def _bounded(text: str) -> str:
    text = text.rstrip()
    if len(text) <= _LONGEST:
        return text
    left_out = len(text) - _LONGEST
    return f"{text[:_HEAD]}\n… ({left_out} characters left out)\n{text[_HEAD + left_out :]}"


def _screened(builder: EnvelopeBuilder, text: str) -> str:
    """The text as the content filters of the call let it pass."""
    screening = screen(builder.context.policy.guardrails, "tool_output", text)
    if screening.decision is None:
        return text
    return str(screening.value) if screening.passes else f"(withheld: {screening.decision.message})"
