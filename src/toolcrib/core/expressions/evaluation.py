"""What is passed through one evaluation."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from toolcrib.contracts import Json
from toolcrib.core.expressions.bounds import Work


class Evaluation(Work):
    """One evaluation: the names it may read and the work it may still do."""

    __slots__ = ("scope",)

    def __init__(self, scope: Mapping[str, Json]) -> None:
        super().__init__()
        self.scope = scope


Evaluate: TypeAlias = Callable[[Evaluation], Json]
"""A compiled node."""
