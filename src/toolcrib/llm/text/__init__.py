"""The text protocol: tools as TypeScript in the prompt, calls in fenced blocks of the answer.

Nothing is evaluated. It imports `llm.base` only; `llm.models` imports it.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.llm.text.calls import MOST_CALLS, Block, BlockProblem, WrittenCall, parse
    from toolcrib.llm.text.fences import Prose, foreign_call
    from toolcrib.llm.text.functions import FINAL
    from toolcrib.llm.text.literals import UNDEFINED, Undefined
    from toolcrib.llm.text.prompt import Toolkit, declare, toolkit_of
    from toolcrib.llm.text.protocol import TextTools
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.llm.text.calls": "Block BlockProblem MOST_CALLS WrittenCall parse",
            "toolcrib.llm.text.fences": "Prose foreign_call",
            "toolcrib.llm.text.functions": "FINAL",
            "toolcrib.llm.text.literals": "UNDEFINED Undefined",
            "toolcrib.llm.text.prompt": "Toolkit declare toolkit_of",
            "toolcrib.llm.text.protocol": "TextTools",
        },
    )

__all__ = [
    "FINAL",
    "MOST_CALLS",
    "UNDEFINED",
    "Block",
    "BlockProblem",
    "Prose",
    "TextTools",
    "Toolkit",
    "Undefined",
    "WrittenCall",
    "declare",
    "foreign_call",
    "parse",
    "toolkit_of",
]
