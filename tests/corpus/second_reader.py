"""Somebody who reads a task a second time and knows what it means, as a model that answers from the corpus.

The reader sees only the question, as a model does: the values and words that are asked about, and what was read.
"""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Final

import orjson

from tests.corpus.corpus import Condition, Op, Part, Task
from tests.corpus.systems import system_of
from toolcrib.agents.evidence import words_of
from toolcrib.contracts import JsonObject, ModelError
from toolcrib.llm import Request

_POINT: Final = re.compile(r"^([vw]\d+): (.*)$", re.MULTILINE)
_READ: Final = re.compile(r"^- (condition|change): (\S+) (.*?)(?: \(\".*\"\))?$", re.MULTILINE)
_VALUE: Final = re.compile(r"(\S+) (\S+?)(?: is to be)? ('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")")
_WORDS: Final = re.compile(r"carries \"(.*)\"\. What do")


class SecondReader:
    """Reads one task a second time.

    Args:
        task: The task.
        wrong_share: How many of the answers are the opposite of the truth, of 1; the same ones each time.
    """

    def __init__(self, task: Task, *, wrong_share: float = 0.0) -> None:
        self._task = task
        self._system = system_of(task.system)
        self._wrong_share = wrong_share

    def answer(self, question: str) -> JsonObject:
        """The answer to all points of a question.

        Args:
            question: What `second_question` makes.
        """
        read, _, asked = question.rpartition("\n\n")
        return {key: self._about(key, text, read) for key, text in _POINT.findall(asked)}

    def _about(self, key: str, text: str, read: str) -> JsonObject:
        is_wrong = Random(f"{self._task.id} {text}").random() < self._wrong_share
        if key.startswith("v"):
            return self._about_value(text, is_wrong=is_wrong)
        words = next(iter(_WORDS.findall(text)), "")
        return self._about_words(words, read, is_wrong=is_wrong)

    # Values -----------------------------------------------------------------------------------------------------------

    def _about_value(self, text: str, *, is_wrong: bool) -> JsonObject:
        found = _VALUE.search(text)
        if found is None:
            msg = f"the point names no field and value: {text}"
            raise ValueError(msg)
        names, shown = (found[1], found[2]), str(ast.literal_eval(found[3]))
        role = "condition" if "are meant" in text else "change"
        told = [part for part in self._parts(role) if self._is_field(part, *names)]
        right = next((part for part in told if _says(part, shown) and self._compares(part, *names)), None)
        if right is None and self._is_guess(role, names, shown):
            return {"words": "", "stated": "yes" if is_wrong else "unclear"}
        if (right is not None) != is_wrong:
            return {"words": right.words if right else self._task.text[:160], "stated": "yes"}
        instead = next((str(part.value) for part in told if part is not right), None)
        return {"words": "", "stated": "no", "instead": instead}

    def _parts(self, role: str) -> Sequence[Part]:
        return self._task.where if role == "condition" else self._task.changes

    def _field(self, *names: str) -> str:
        """The field that one of some words names, the last first; empty if none does."""
        fields = [self._system.field_called(name) for name in reversed(names)]
        return next((field for field in fields if field), "")

    def _is_field(self, part: Part, *names: str) -> bool:
        return self._field(*names) in {part.field, ""}

    def _compares(self, part: Part, *names: str) -> bool:
        """Whether a condition compares as one of some words says, if any says it."""
        ops = frozenset[Op]().union(*map(self._system.ops_called, names))
        return not ops or not isinstance(part, Condition) or part.op in ops

    def _is_guess(self, role: str, names: Sequence[str], shown: str) -> bool:
        """Whether somebody has guessed what a task means by words that may mean something else."""
        guess = self._task.wrong["other_value"]
        same_role = (guess["in"] == "where") == (role == "condition")
        same_field = self._field(*names) in {guess["field"], ""}
        return (
            bool(self._task.unclear) and same_role and same_field and words_of(shown) == words_of(str(guess["value"]))
        )

    # Words ------------------------------------------------------------------------------------------------------------

    def _about_words(self, words: str, read: str, *, is_wrong: bool) -> JsonObject:
        touched = [part for part in (*self._task.where, *self._task.changes) if self._overlaps(part.words, words)]
        lacking = [part for part in touched if not self._was_read(part, read)]
        unclear = bool(self._task.unclear) and self._overlaps(self._task.unclear, words)
        if bool(lacking or unclear) != is_wrong:
            meaning = "; ".join(map(_meaning, lacking or touched)) or "something else"
            return {"says": "missing", "meaning": meaning}
        return {"says": "already read" if touched else "nothing", "meaning": None}

    def _overlaps(self, one: str, other: str) -> bool:
        """Whether two pieces of the task have a letter or digit in common."""
        text = self._task.text
        return any(
            any(text[place].isalnum() for place in range(max(start, begin), min(start + len(one), begin + len(other))))
            for start in _starts(text, one)
            for begin in _starts(text, other)
        )

    def _was_read(self, part: Part, read: str) -> bool:
        role = "condition" if isinstance(part, Condition) else "change"
        return any(
            said == role and self._is_field(part, name) and _ends(words_of(rest), words_of(str(part.value)))
            for said, name, rest in _READ.findall(read)
        )


def second_reading(task: Task, *, wrong_share: float = 0.0, absent: bool = False) -> Callable[[Request], str]:
    """A script for a model that is asked to read a task a second time.

    Args:
        task: The task.
        wrong_share: How many of its answers are the opposite of the truth, of 1.
        absent: It cannot be reached.
    """
    reader = SecondReader(task, wrong_share=wrong_share)

    def answer(request: Request) -> str:
        if absent:
            raise ModelError("not_found", "there is no second reader")
        return orjson.dumps(reader.answer(request.messages[-1].text)).decode()

    return answer


def _says(part: Part, shown: str) -> bool:
    return words_of(str(part.value)) == words_of(shown)


def _meaning(part: Part) -> str:
    return f"{part.field} {part.op if isinstance(part, Condition) else 'becomes'} {part.value}".replace("_", " ")


def _starts(text: str, piece: str) -> Iterator[int]:
    return (start for start in range(len(text)) if piece and text.startswith(piece, start))


def _ends(words: Sequence[str], ending: Sequence[str]) -> bool:
    return bool(ending) and tuple(words[-len(ending) :]) == tuple(ending)
