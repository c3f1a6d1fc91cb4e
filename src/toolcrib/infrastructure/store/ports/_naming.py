"""How kept things are searched for the names of others: run ids in requests, digests of blobs in any text.

Conservative on purpose: what looks like a name is one, so that nothing goes which might be needed. No I/O.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, cast

from toolcrib.contracts import Json, JsonObject

_DIGEST: Final = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_RUN_ID: Final = "run_id"


def runs_named_in(value: Json) -> Iterator[str]:
    """The values of all fields called `run_id` or `…_run_id`, at any depth."""
    if isinstance(value, dict):
        for name, inner in cast("JsonObject", value).items():
            if isinstance(inner, str) and (name == _RUN_ID or name.endswith(f"_{_RUN_ID}")):
                yield inner
            else:
                yield from runs_named_in(inner)
    elif isinstance(value, list):
        for inner in cast("list[Json]", value):
            yield from runs_named_in(inner)


def digests_named_in(texts: Iterable[str | None]) -> Iterator[str]:
    """Everything in the texts that could be the digest of a blob."""
    for text in texts:
        if text is not None:
            yield from _DIGEST.findall(text)
