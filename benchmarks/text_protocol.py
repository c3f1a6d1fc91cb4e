"""What it costs to read a model's answer for calls, beside reading the same arguments as JSON.

Three answers, each timed by the processor's clock of this process, and the same arguments read by the standard
library's `json.loads`: a simple call, one with a string of a megabyte, and one with an array of 50,000 numbers, once as
strict JSON and once with a trailing comma, which only the reader of literals can take.

    python -m benchmarks.text_protocol --rounds 50
"""

import argparse
import json
from collections.abc import Callable
from statistics import median
from time import process_time_ns

from toolcrib.llm.text import parse

MEGABYTE = "x" * 1_000_000
MANY = list(range(50_000))
ARGUMENTS: dict[str, str] = {
    "simple call": '"https://example.com", 5000',
    "string of 1 MB": json.dumps(MEGABYTE),
    "array of 50,000": json.dumps(MANY),
    "the same, not strict": json.dumps(MANY).replace("]", ",]"),
    "1 MB of words, no call": "",
}


def answer(name: str) -> str:
    """What the model wrote."""
    return "word " * 200_000 if not ARGUMENTS[name] else f"I call it.\n```tool\nreturn f({ARGUMENTS[name]});\n```"


def took_us(work: Callable[[], object], rounds: int) -> float:
    """Microseconds, the median."""
    found: list[float] = []
    for _ in range(rounds):
        before = process_time_ns()
        work()
        found.append((process_time_ns() - before) / 1000)
    return median(found)


def measure(rounds: int) -> dict[str, dict[str, float]]:
    """Microseconds of each answer, of the same arguments as JSON, and how many times as long the first is."""
    found: dict[str, dict[str, float]] = {}
    for name, arguments in ARGUMENTS.items():
        text = answer(name)
        own = took_us(lambda text=text: parse(text), rounds)
        row = {"microseconds": round(own, 1)}
        if arguments:
            written = f"[{arguments.replace(',]', ']')}]"
            plain = took_us(lambda written=written: json.loads(written), rounds)
            row |= {"json_loads": round(plain, 1), "ratio": round(own / plain, 1)}
        found[name] = row
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    found = measure(parser.parse_args().rounds)
    width = max(map(len, found))
    for name, row in found.items():
        print(f"{name:{width}}", *(f"{key} {value:,}" for key, value in row.items()), sep="  ")


if __name__ == "__main__":
    main()
