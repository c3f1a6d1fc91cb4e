"""The text protocol: tools as TypeScript in the prompt, calls in fenced blocks of the answer.

Nothing is evaluated. It imports `llm.base` only; `llm.models` imports it.
"""

from toolcrib.llm.text.calls import MOST_CALLS, Block, BlockProblem, WrittenCall, parse
from toolcrib.llm.text.fences import Prose, foreign_call
from toolcrib.llm.text.functions import FINAL
from toolcrib.llm.text.literals import UNDEFINED, Undefined
from toolcrib.llm.text.prompt import Toolkit, toolkit_of
from toolcrib.llm.text.protocol import TextTools

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
    "foreign_call",
    "parse",
    "toolkit_of",
]
