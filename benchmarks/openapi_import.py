"""What importing OpenAPI documents costs: CPU seconds, tools, and how large the result is.

    python -m benchmarks.openapi_import FILE...

Each document is imported several times in this process; the least is what the machine needs when nobody else is busy,
the median what one sees. The parser's own share is measured beside it, because no importer can be faster than that.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from toolcrib.core.providers import ImportedApi
from toolcrib.kinds.http.openapi import import_openapi

ROUNDS = 5


@dataclass(frozen=True, slots=True)
class ImportFigures:
    """One document."""

    document: str
    bytes: int
    tools: int
    least_s: float
    """CPU seconds of the quickest import."""
    median_s: float
    parse_s: float
    """CPU seconds to parse the text alone."""
    schemas_bytes: int
    """Of all input and output schemas as JSON."""
    losses_that_matter: int


def measure(document: str, text: bytes, rounds: int = ROUNDS) -> ImportFigures:
    """Import a document several times."""
    api, first = timed(lambda: import_openapi(text, name="api", base_url="https://api.test"))
    times = [first] + [
        timed(lambda: import_openapi(text, name="api", base_url="https://api.test"))[1] for _ in range(rounds - 1)
    ]
    return ImportFigures(
        document=document,
        bytes=len(text),
        tools=len(api.tools),
        least_s=min(times),
        median_s=statistics.median(times),
        parse_s=min(timed(lambda: parsed(text))[1] for _ in range(rounds)),
        schemas_bytes=schemas_bytes(api),
        losses_that_matter=api.report.summary()["losses_that_matter"],
    )


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What the work returns, and its CPU seconds."""
    before = time.process_time()
    result = work()
    return result, time.process_time() - before


def parsed(text: bytes) -> Any:
    """The text as JSON; null if it is YAML, whose parser is the importer's own."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def schemas_bytes(api: ImportedApi) -> int:
    """Bytes of all schemas of an import."""
    return sum(len(orjson.dumps([tool.input_schema, tool.output_schema])) for tool in api.tools)


def table(figures: list[ImportFigures]) -> str:
    """The figures as Markdown."""
    lines = [
        "| document | MB | tools | import, least s | median s | parse alone s | schemas MB | losses that matter |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for found in figures:
        numbers = (found.bytes / 1e6, found.tools, found.least_s, found.median_s, found.parse_s)
        shown = f"| {found.document} | {numbers[0]:.2f} | {numbers[1]} | {numbers[2]:.2f} | {numbers[3]:.2f} "
        lines.append(shown + f"| {numbers[4]:.2f} | {found.schemas_bytes / 1e6:.2f} | {found.losses_that_matter} |")
    return "\n".join(lines)


def main() -> None:
    """Measure the documents that are named."""
    options = argparse.ArgumentParser(description="Measure the import of OpenAPI documents.")
    options.add_argument("files", nargs="+", type=Path, metavar="FILE")
    options.add_argument("--rounds", type=int, default=ROUNDS)
    chosen = options.parse_args()
    print(table([measure(file.stem, file.read_bytes(), chosen.rounds) for file in chosen.files]))


if __name__ == "__main__":
    main()
