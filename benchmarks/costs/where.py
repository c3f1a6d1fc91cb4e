"""Which modules and functions the calls of a work are in.

- calls: how often the function was called; a coroutine that goes on after it was suspended is called once more.
- self: these calls, and those of C functions that it makes itself. The selves of all functions add up to the total.
- below: all calls that are made while it, or a function of the module, is active; itself included.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

_VERSION: Final = ".".join(map(str, sys.version_info[:2]))


@dataclass(slots=True)
class Tally:
    """The calls of a function or a module."""

    calls: int = 0
    own: int = 0
    below: int = 0


@dataclass(slots=True)
class _Active:
    """How many of a function's or module's calls are active, and the total when the first of them began."""

    depth: int = 0
    since: int = 0


@dataclass(slots=True)
class CallTree:
    """Counts calls by function and by module, with what is below them."""

    total: int = 0
    functions: defaultdict[CodeType, Tally] = field(default_factory=lambda: defaultdict(Tally))
    modules: defaultdict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    packages: defaultdict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    c_functions: Counter[str] = field(default_factory=Counter[str])
    _stack: list[CodeType] = field(default_factory=list[CodeType])
    _active: defaultdict[object, _Active] = field(default_factory=lambda: defaultdict(_Active))
    _known: dict[CodeType, dict[object, Tally]] = field(default_factory=dict[CodeType, dict[object, Tally]])

    async def follow(self, work: Callable[[], Awaitable[object]], repeats: int) -> None:
        """Count while the work is done so many times."""
        sys.setprofile(self._seen)
        try:
            for _ in range(repeats):
                await work()
        finally:
            sys.setprofile(None)

    def _seen(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "c_call":
            self.total += 1
            self.c_functions[getattr(argument, "__qualname__", repr(argument))] += 1
            if self._stack:
                self._own(self._stack[-1])
        elif event == "call":
            self._enter(frame.f_code)
        elif event == "return" and self._stack and self._stack[-1] is frame.f_code:
            self._leave(self._stack.pop())

    def _own(self, code: CodeType) -> None:
        for tally in self._places(code).values():
            tally.own += 1

    def _enter(self, code: CodeType) -> None:
        places = self._places(code)
        for key, tally in places.items():
            tally.calls += 1
            active = self._active[key]
            if not active.depth:
                active.since = self.total
            active.depth += 1
        self.total += 1
        self._own(code)
        self._stack.append(code)

    def _leave(self, code: CodeType) -> None:
        for key, tally in self._places(code).items():
            active = self._active[key]
            active.depth -= 1
            if not active.depth:
                tally.below += self.total - active.since

    def _places(self, code: CodeType) -> dict[object, Tally]:
        """The tallies of a function, of its module and of its package."""
        if code not in self._known:
            module = module_of(code.co_filename)
            package = package_of(module)
            self._known[code] = {
                code: self.functions[code],
                ("module", module): self.modules[module],
                ("package", package): self.packages[package],
            }
        return self._known[code]


def module_of(filename: str) -> str:
    """A module as the tables name it: ours by its path below the source, others by their package."""
    path = Path(filename).as_posix()
    for folder in ("toolcrib", "benchmarks"):
        if f"/{folder}/" in path and "/site-packages/" not in path:
            return f"{folder}/{path.rpartition(f'/{folder}/')[2]}"
    for folder in ("site-packages", f"python{_VERSION}"):
        if f"/{folder}/" in path:
            return path.rpartition(f"/{folder}/")[2].split("/")[0].removesuffix(".py")
    return path.rpartition("/")[2]


def package_of(module: str) -> str:
    """The package of a module, two levels deep below the source."""
    return "/".join(module.split("/")[:-1][:3]) or module


def tables(tree: CallTree, runs: int, top: int) -> str:
    """Markdown: the packages, modules and functions with most calls per run."""

    def told(code: CodeType) -> str:
        return f"{module_of(code.co_filename)} {code.co_qualname}"

    functions = {told(code): tally for code, tally in tree.functions.items()}
    return "\n\n".join(
        [
            f"{tree.total / runs:.1f} calls a run",
            _table("package", tree.packages, runs, top),
            _table("module", tree.modules, runs, top),
            _table("function, most by itself", functions, runs, top),
            _table("function, most below it", functions, runs, top, key=lambda tally: tally.below),
            "\n".join(
                ["| C function | calls |", "| --- | ---: |"]
                + [f"| {name} | {calls / runs:.1f} |" for name, calls in tree.c_functions.most_common(top)]
            ),
        ]
    )


def _table(
    title: str, tallies: Mapping[str, Tally], runs: int, top: int, key: Callable[[Tally], int] = lambda tally: tally.own
) -> str:
    total = sum(tally.own for tally in tallies.values())
    lines = [f"| {title} | calls | self | self % | below |", "| --- | ---: | ---: | ---: | ---: |"]
    for name, tally in sorted(tallies.items(), key=lambda item: -key(item[1]))[:top]:
        figures = (
            f"{tally.calls / runs:.1f} | {tally.own / runs:.1f} | {tally.own / total:.1%} | {tally.below / runs:.1f}"
        )
        lines.append(f"| {name} | {figures} |")
    return "\n".join(lines)
