"""Writes `src/toolcrib/sync`: the synchronous facade of a crib, its parts and its handles, from their source.

    python -m tools.sync_facade            # writes the modules
    python -m tools.sync_facade --check    # fails if one of them is not as it would be written

Each class gets a class of the same name, and each public method one of the same signature, which waits for the result:
asynchronous iterators become iterators, asynchronous contexts contexts, and `await` is taken out of the examples. The
annotations are copied as they are written, with the imports that they need.
"""

import argparse
import ast
import copy
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

T = TypeVar("T")
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

FOLDER: Final = Path("src/toolcrib/sync")
MODULES: Final = {
    "acting": ("api.acting",),
    "agents": ("agents.agents", "agents.executions"),
    "conversations": ("agents.conversations", "agents.evaluations", "agents.questions"),
    "crib": ("crib",),
    "handles": ("api.handles", "api.run_streams"),
    "imports": ("providers.imports",),
    "providers": (
        "providers.connections",
        "providers.model_catalog",
        "providers.reference_data",
        "providers.secrets",
    ),
    "runs": ("runs.approvals", "runs.forks", "runs.ids", "runs.retention", "runs.settlements", "runs.triggers"),
    "tools": ("tools.lifecycle", "tools.listing", "tools.prompts", "tools.queries"),
    "workflows": ("workflows.instances", "workflows.workflows"),
}
"""Modules of the facade, and the modules of `toolcrib.crib` whose classes each fronts."""
DEFINER: Final = "toolcrib.crib.api.definitions"
"""The module of the `Definer`, whose methods are those of a crib too."""
CLASSES: Final = (  # noqa: SIM905 - shorter
    "ActingCrib Agent AgenticTool Agents Approvals CompositeTool Connections Conversations Crib Evaluations Executions "
    "Forks Handle Ids Imports Instances ModelCatalog NamedThings Prompts Queries Questions ReferenceData Retention "
    "RunStream "
    "Secrets Settlements ToolLife ToolListing Triggers WorkflowHandle Workflows"
).split()
INTERNAL: Final = {
    "ActingCrib.authorize", "Approvals.decide_call", "Connections.holder_of", "Connections.ticket",
    "Conversations.begin", "Conversations.create", "Conversations.readable", "Conversations.settle",
    "Conversations.settle_turns",
    "Executions.follow_closely",
    "Executions.run_for", "Executions.with_files", "Prompts.of",
}  # fmt: skip
"""Methods that other modules of the crib call, and users do not."""
_ASYNC_ITERATORS: Final = {"AsyncGenerator", "AsyncIterator", "AsyncIterable"}
_AWAITED: Final = {"Coroutine", "Awaitable"}
_DUNDERS: Final = {
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "__call__": "__call__",
}
"""Special methods that a facade has, and what they are called there."""
_SPECIAL: Final = {
    "Crib.from_settings": '''
    @classmethod
    def from_settings{signature}:
        {docstring}
        loop = EventLoopThread()
        crib = loop.call(asynchronous.Crib.from_settings, {arguments})
        return cls._around(crib, loop)
''',
    "Crib.rehearse": '''
    def rehearse(
        self, changes: Callable[[Crib], object] | None = None, *, functions_here: bool = True
    ) -> RehearsalReport:
        {docstring}
        if changes is None:
            return self._loop.run(self._crib.rehearse, functions_here=functions_here)

        async def change(shadow: asynchronous.Crib) -> None:
            await asyncio.to_thread(changes, self._beside(shadow))

        return self._loop.run(self._crib.rehearse, change, functions_here=functions_here)
''',
    "Crib.shadow": '''
    @contextmanager
    def shadow{signature}:
        {docstring}
        with self._loop.enter(self._crib.shadow, {arguments}) as (crib, store):
            yield self._beside(crib), store
''',
    "Crib.close": '''
    def close(self) -> None:
        {docstring}
        if self._owns_loop:
            self._loop.close()
        else:
            self._loop.run(self._crib.close)
''',
    "RunStream.__aenter__": '''
    def __enter__(self) -> Self:
        {docstring}
        self._loop.run(self._run_stream.__aenter__)
        return self
''',
}  # fmt: skip
"""Methods whose arguments or results have parts that the rules below do not reach."""
_CRIB: Final = '''
    def __init__{signature}:
        loop = EventLoopThread()
        crib = loop.call(asynchronous.Crib, {arguments})
        self._begin(crib, loop, owns_loop=True)

    def _begin(self, crib: asynchronous.Crib, loop: EventLoopThread, *, owns_loop: bool) -> None:
        super().__init__(crib, loop)
        self._crib = crib
        self._owns_loop = owns_loop
        if owns_loop:
            loop.closes(crib.close)

    @classmethod
    def _around(cls, crib: asynchronous.Crib, loop: EventLoopThread, *, owns_loop: bool = True) -> Self:
        made = cls.__new__(cls)
        made._begin(crib, loop, owns_loop=owns_loop)  # noqa: SLF001
        return made

    def _beside(self, crib: asynchronous.Crib) -> Crib:
        """Another crib in the same loop."""
        return Crib._around(crib, self._loop, owns_loop=False)

    def __enter__(self) -> Self:
        try:
            self.open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @cached_property
    def retention(self) -> Retention:
        """What is kept of ended runs, and how they are pruned."""
        return Retention(self._crib.retention, self._loop)
'''


@dataclass
class Source:
    """A module of `toolcrib.crib`."""

    name: str
    tree: ast.Module = field(init=False)
    imports: dict[str, str] = field(init=False)
    """Import statements by the names that they bind; those of names that the module defines too."""

    def __post_init__(self) -> None:
        self.tree = ast.parse(inspect.getsource(importlib.import_module(self.name)))
        self.imports = dict(self._imports())

    def _imports(self) -> Iterator[tuple[str, str]]:
        for node in self.tree.body:
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", node)
            name = getattr(target, "id", getattr(target, "name", None))
            if isinstance(name, str):
                yield name, f"from {self.name} import {name}"
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                for alias in node.names:
                    bound = alias.asname or alias.name
                    whole = f"{alias.name} as {alias.asname}" if alias.asname else alias.name
                    start = f"from {node.module} " if isinstance(node, ast.ImportFrom) else ""
                    yield bound, f"{start}import {whole}"

    def cls(self, name: str) -> ast.ClassDef | None:
        """A class by its name."""
        found = (node for node in self.tree.body if isinstance(node, ast.ClassDef) and node.name == name)
        return next(found, None)

    def fronted(self) -> Iterator[ast.ClassDef]:
        """The classes that have a facade."""
        for name in CLASSES:
            if (found := self.cls(name)) is not None:
                yield found


SOURCES: Final = {module: [Source(f"toolcrib.crib.{name}") for name in names] for module, names in MODULES.items()}


def home_of(name: str) -> tuple[str, Source, ast.ClassDef]:
    """The module of the facade that has a class, and where its source is."""
    return next(
        (module, source, found)
        for module, sources in SOURCES.items()
        for source in sources
        for found in source.fronted()
        if found.name == name
    )


class _Annotation(ast.NodeTransformer):
    """Replaces classes by their facades, and asynchronous types by what they become."""

    def __init__(self) -> None:
        self.facades: set[str] = set()

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return self.visit(ast.parse(node.value, mode="eval").body) if isinstance(node.value, str) else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return self.visit(ast.Name(node.attr)) if node.attr in CLASSES else node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in CLASSES:
            self.facades.add(node.id)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        name = getattr(node.value, "id", None)
        if name == "Literal":
            return node
        if name in _ASYNC_ITERATORS:
            element = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
            return ast.Subscript(ast.Name("Iterator"), self.visit(element))
        if name in _AWAITED:
            return self.visit(node.slice.elts[-1] if isinstance(node.slice, ast.Tuple) else node.slice)
        return self.generic_visit(node)


@dataclass
class Writer:
    """Writes one module of the facade."""

    module: str
    lines: list[str] = field(default_factory=list[str])
    typing: dict[str, str] = field(default_factory=dict[str, str])
    """Imports for annotations, by the names that they bind."""
    overloaded: set[str] = field(default_factory=set[str])
    """Methods with several signatures."""
    running: dict[str, str] = field(default_factory=dict[str, str])
    """Imports that are used when the module runs."""

    def text(self) -> str:
        """The whole module."""
        for source in SOURCES[self.module]:
            for node in sorted(source.fronted(), key=lambda each: each.lineno):
                self._class(source, node)
        named = ",\n".join(f"`{source.name}`" for source in SOURCES[self.module])
        title = (
            f"Synchronous forms of the classes of several modules.\n\n{named}"
            if "," in named
            else f"Synchronous forms of {named}"
        )
        head = [f'"""{title}.\n\nWritten by `python -m tools.sync_facade`; not to be edited.\n"""\n']
        head += ["from __future__ import annotations\n", *sorted(self.running.values())]
        typing = [line for name, line in self.typing.items() if name not in self.running]
        if typing:
            lines = (f"    {line}" for line in sorted(typing))
            head += ["from typing import TYPE_CHECKING", "if TYPE_CHECKING:", *lines]
        return "\n".join([*head, *self.lines]) + "\n"

    def _class(self, source: Source, node: ast.ClassDef) -> None:
        name = node.name
        inner = f"_{re.sub(r'(?<!^)(?=[A-Z])', '_', name).lower()}"
        bases, parameters = self._bases(source, node)
        if name == "Crib":
            self.running |= {
                "Retention": "from toolcrib.sync.runs import Retention",
                "cached_property": "from functools import cached_property",
            }
        self.running["Facade"] = "from toolcrib.sync.event_loop import EventLoopThread, Facade"
        self._emit(f"\n\nclass {name}({', '.join(bases)}):")
        self._emit(f"    {_docstring(node, 4)}\n")
        if name == "Crib":
            self._crib(source, node)
        else:
            self.typing[f"asynchronous:{name}"] = f"from {source.name} import {name} as Asynchronous{name}"
            kind = f"Asynchronous{name}{parameters}"
            self._emit(f"    def __init__(self, asynchronous: {kind}, loop: EventLoopThread) -> None:")
            self._emit("        super().__init__(asynchronous, loop)")
            self._emit(f"        self.{inner} = asynchronous\n")
            self._attributes(source, node, inner)
        bodies = [(source, node)]
        if name == "Crib":
            inner, definer = "_crib", Source(DEFINER)
            bodies.append((definer, _found(definer.cls("Definer"))))
        for part, body in bodies:
            for method in body.body:
                self._member(part, name, inner, method)

    def _bases(self, source: Source, node: ast.ClassDef) -> tuple[list[str], str]:
        """The bases of a facade, and the type parameters of its class: `[OutputT_co]`, or nothing."""
        written = [ast.unparse(base) for base in node.bases]
        bases = [base for base in written if base.partition("[")[0] in (*CLASSES, "Generic")]
        parameters = "".join(f"[{base.partition('[')[2]}" for base in bases if "[" in base)
        for used in re.findall(r"\w+", " ".join(bases)):
            if used not in CLASSES:
                self.running[used] = source.imports[used]
            elif (module := home_of(used)[0]) != self.module:
                self.running[used] = f"from toolcrib.sync.{module} import {used}"
        fronted = any(base.partition("[")[0] in CLASSES for base in bases)
        return (bases if fronted else ["Facade", *bases]), parameters

    def _crib(self, source: Source, node: ast.ClassDef) -> None:
        self.running |= {
            "asynchronous": "from toolcrib.crib import crib as asynchronous",
            "asyncio": "import asyncio",
            "contextmanager": "from contextlib import contextmanager",
        }
        self.typing |= {name: source.imports[name] for name in ("Self", "TracebackType")}
        made = next(each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__")
        self._emit(_CRIB.format(signature=self._signature(source, made)[0], arguments=_arguments(made)))

    def _attributes(self, source: Source, node: ast.ClassDef, inner: str) -> None:
        """Public attributes that the constructor takes, and the principal of a crib."""
        made = next((each for each in node.body if getattr(each, "name", "") == "__init__"), None)
        if not isinstance(made, ast.FunctionDef):
            return
        types = {arg.arg: arg.annotation for arg in (*made.args.args, *made.args.kwonlyargs)}
        if node.name == "ActingCrib":
            types, names = {"principal": ast.Name("Principal")}, ["principal"]
        else:
            names = [
                target.attr
                for target in ast.walk(made)
                if isinstance(target, ast.Attribute) and isinstance(target.ctx, ast.Store) and target.attr in types
            ]
        for name in names:
            if name.startswith("_"):
                continue
            annotation = self._annotated(source, types[name])
            text = f'    @property\n    def {name}(self) -> {annotation}:\n        """The {name}."""\n'
            self._emit(f"{text}        return self.{inner}.{name}\n")

    def _member(self, source: Source, owner: str, inner: str, node: ast.stmt) -> None:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return
        name, decorators = node.name, {ast.unparse(each).split(".")[-1] for each in node.decorator_list}
        hidden = name.startswith("_") and (name not in _DUNDERS or owner in ("ActingCrib", "Crib"))
        if hidden or "abstractmethod" in decorators or f"{owner}.{name}" in INTERNAL:
            return
        if special := _SPECIAL.get(f"{owner}.{name}"):
            signature, _ = self._signature(source, node)
            if "contextmanager" in special:
                self.typing["Generator"] = "from collections.abc import Generator"
                signature = signature.replace("-> Iterator[", "-> Generator[")
            if name == "rehearse":
                self.typing |= {each: source.imports[each] for each in ("Callable", "RehearsalReport")}
            if "-> Self" in special:
                self.typing["Self"] = source.imports["Self"]
            text = special.format(signature=signature, arguments=_arguments(node), docstring=_docstring(node, 8))
            self._emit(text)
        elif "cached_property" in decorators or "property" in decorators:
            self._property(source, inner, node, cached="cached_property" in decorators)
        elif "classmethod" not in decorators:
            self._method(source, inner, node, decorators)

    def _property(self, source: Source, inner: str, node: Function, *, cached: bool) -> None:
        annotation = self._annotated(source, node.returns)
        facade = annotation.partition("[")[0]
        value = f"self.{inner}.{node.name}"
        if facade in CLASSES:
            value = f"{facade}({value}, self._loop)"
        if cached:
            self.running["cached_property"] = "from functools import cached_property"
        self._emit(f"    @{'cached_property' if cached else 'property'}\n    def {node.name}(self) -> {annotation}:")
        self._emit(f"        {_docstring(node, 8)}\n        return {value}\n")

    def _method(self, source: Source, inner: str, node: Function, decorators: set[str]) -> None:
        name = _DUNDERS.get(node.name, node.name)
        signature, returned = self._signature(source, node)
        kind = getattr(getattr(node.returns, "value", None), "id", "")
        if "overload" in decorators:
            self.running["overload"] = "from typing import overload"
            self.overloaded.add(node.name)
            self._emit(f"    @overload\n    def {name}{signature}: ...\n")
            return
        if kind in _ASYNC_ITERATORS:
            how = "iterate"
        else:
            how = "run" if isinstance(node, ast.AsyncFunctionDef) or kind in _AWAITED else "call"
        function = f"self.{inner}" if node.name == "__call__" else f"self.{inner}.{node.name}"
        if node.name in self.overloaded:  # of which a checker would take the first form
            self.running |= {"cast": "from typing import cast", "Any": "from typing import Any"}
            function = f'cast("Any", {function})'
        work = f"self._loop.{how}({function}, {_arguments(node)})"
        facade = returned.partition("[")[0]
        work = f"{facade}({work}, self._loop)" if facade in CLASSES else work
        self._emit(f"    def {name}{signature}:\n        {_docstring(node, 8)}\n        return {work}\n")

    def _signature(self, source: Source, node: Function) -> tuple[str, str]:
        """The parameters with the result, and the result alone."""
        arguments = copy.deepcopy(node.args)
        for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
            if each is not None and each.annotation is not None:
                each.annotation = ast.parse(self._annotated(source, each.annotation), mode="eval").body
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if default is not None:
                names = {each.id for each in ast.walk(default) if isinstance(each, ast.Name)} - {"_"}
                self.running |= {used: source.imports[used] for used in names if used in source.imports}
        returned = self._annotated(source, node.returns) if node.returns is not None else "None"
        return f"({ast.unparse(arguments)}) -> {returned}", returned

    def _annotated(self, source: Source, annotation: ast.expr | None) -> str:
        """An annotation as the facade has it; what it names is imported."""
        transformer = _Annotation()
        made = transformer.visit(ast.parse(ast.unparse(_found(annotation)), mode="eval").body)
        for facade in transformer.facades:
            module, _, _ = home_of(facade)
            if module != self.module:
                self.running[facade] = f"from toolcrib.sync.{module} import {facade}"
        for used in {each.id for each in ast.walk(made) if isinstance(each, ast.Name)} - transformer.facades:
            if used == "Iterator":
                self.typing[used] = "from collections.abc import Iterator"
            elif used in source.imports:
                self.typing[used] = source.imports[used]
        return ast.unparse(made)

    def _emit(self, text: str) -> None:
        self.lines.append(text)


def _found(found: T | None) -> T:
    """What must be there."""
    if found is None:
        msg = "a class, method or annotation is not where it was; see tools/sync_facade.py"
        raise LookupError(msg)
    return found


def _arguments(node: Function) -> str:
    """The arguments with which a method passes on what it was given."""
    arguments = node.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)][1:]
    names += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    names += [f"{each.arg}={each.arg}" for each in arguments.kwonlyargs]
    names += [f"**{arguments.kwarg.arg}"] if arguments.kwarg else []
    return ", ".join(names)


def _docstring(node: ast.AST, indent: int) -> str:
    """The docstring with synchronous examples."""
    text = ast.get_docstring(node) or "The same as in the asynchronous crib."  # type: ignore[arg-type]
    lines = synchronous(text).splitlines()
    body = "\n".join([lines[0], *(" " * indent + line if line else "" for line in lines[1:])])
    end = f'\n{" " * indent}"""' if len(lines) > 1 else '"""'
    prefix = "r" if "\\" in body else ""
    return f'{prefix}"""{body}{end}'


def synchronous(text: str) -> str:
    """A docstring whose examples wait without `await`."""
    text = text.replace("async with ", "with ").replace("async for ", "for ").replace("await it with", "call it with")
    place = 0
    while (place := text.find("(await ", place)) >= 0:
        end, depth = place, 0
        for end in range(place, len(text)):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            if depth == 0:
                break
        inside = text[place + len("(await ") : end]
        is_call = place > 0 and (text[place - 1].isalnum() or text[place - 1] in "_)]")
        is_group = not is_call and text[end + 1 : end + 2] in (".", "[")
        text = text[:place] + (inside if is_group else f"({inside})") + text[end + 1 :]
    return re.sub(r"\bawait (?=[a-z])", "", text)


def files() -> dict[Path, str]:
    """The modules as they are to be, formatted."""
    written = {FOLDER / f"{module}.py": Writer(module).text() for module in MODULES}
    return {path: _formatted(text, path) for path, text in written.items()}


def _formatted(text: str, path: Path) -> str:
    ruff = str(Path(sys.executable).with_name("ruff"))
    for command in (["check", "--fix-only", "--unsafe-fixes", "--select", "I,F401,UP,TC"], ["format"]):
        made = subprocess.run(
            [ruff, *command, "--quiet", "--stdin-filename", str(path), "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        )
        text = made.stdout
    return text


def main() -> int:
    """Write or check the modules."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a module would change")
    check = parser.parse_args().check
    old = [path for path, text in files().items() if not path.exists() or path.read_text() != text]
    for path, text in files().items():
        if path in old and not check:
            path.write_text(text)
            print(f"wrote {path}")
    if check and old:
        print(f"not as written by python -m tools.sync_facade: {', '.join(map(str, old))}")
    return int(check and bool(old))


if __name__ == "__main__":
    sys.exit(main())
