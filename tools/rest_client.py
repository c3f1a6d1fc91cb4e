"""Writes `src/toolcrib/client`: the clients of the REST API, asynchronous and synchronous, from the OpenAPI document.

    python -m tools.rest_client            # writes the modules
    python -m tools.rest_client --check    # fails if one of them is not as it would be written

A tag of the document is a group (`client.tools`), an operation a method of it, without the group's noun:
`list_tools` is `client.tools.list()`. Contracts are imported; the other schemas of responses become models of
`answers`. The fields of a small body are keyword arguments; a definition is one argument.
"""

import argparse
import importlib
import inspect
import keyword
import pkgutil
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from pydantic import BaseModel

import toolcrib.contracts
from toolcrib.contracts import JsonObject
from tools.docs.operations import document

FOLDER: Final = Path("src/toolcrib/client")
MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "providers": ("providers", "connections", "secrets"),
    "runs": ("runs", "approvals"),
    "tools": ("tools",),
    "triggers": ("triggers", "mcp_servers", "server"),
    "workflows": ("workflows",),
}
"""The modules of groups; a group that is not here has a module of its own."""
GROUPS: Final[Mapping[str, str]] = {
    "calls": "tools",
    "executions": "runs",
    "mcp": "mcp_servers",
    "schemas": "server",
    "health": "server",
}
"""The groups of tags with another name."""
LEFT_OUT: Final = {"openai", "ag-ui"}
"""Tags of other protocols, which have clients of their own."""
NOUNS: Final[Mapping[str, tuple[str, ...]]] = {"runs": ("run", "execution"), "server": ()}
"""What the names of a group's methods leave out; else the group without its plural `s`."""
SMALL: Final = 12
"""Fields of a body that become keyword arguments, at most."""
_MOST_CHOICES: Final = 4
"""Types of an argument that are named; more are any contract."""
_HEAD: Final = '"""{doc}\n\nWritten by `python -m tools.rest_client`.\n"""\n\n'
_SIMPLE: Final = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_BUILTINS: Final = {"list", "id", "type", "format", "filter", "map", "set"}
_CURSORS: Final = ("after", "before")


class Argument(NamedTuple):
    """Of a method."""

    name: str
    wire: str
    """Its name in the request."""
    annotation: str
    is_required: bool
    doc: str = ""


@dataclass
class Operation:
    """An operation as a method."""

    group: str
    name: str
    method: str
    path: str
    doc: str
    returns: str
    places: list[Argument] = field(default_factory=list[Argument])
    query: list[Argument] = field(default_factory=list[Argument])
    headers: list[Argument] = field(default_factory=list[Argument])
    fields: list[Argument] = field(default_factory=list[Argument])
    """Of a small body."""
    body: Argument | None = None
    """A body that is one argument."""
    is_stream: bool = False
    item: str | None = None
    """Of a page, whose items can be iterated over."""

    @property
    def cursor(self) -> str | None:
        """The query parameter that has the place of the next page."""
        return next((each.wire for each in self.query if each.wire in _CURSORS), None) if self.item else None


class Schemas:
    """Types of the document's schemas: contracts by import, others as models that are written."""

    def __init__(self, schemas: JsonObject) -> None:
        self._schemas = schemas
        self.written: dict[str, str] = {}
        """The source of models, by name, in the order in which they need each other."""

    def type_of(self, schema: JsonObject, *, is_input: bool = False) -> str:
        """The annotation of a schema."""
        if "$ref" in schema:
            return self._named(schema["$ref"].rpartition("/")[2], is_input=is_input)
        choices: list[JsonObject] = schema.get("anyOf") or schema.get("oneOf") or []
        if choices:
            kinds = dict.fromkeys(self.type_of(each, is_input=is_input) for each in choices)
            if is_input and len(kinds) > _MOST_CHOICES:
                return "Contract | JsonObject"
            return " | ".join(kinds)
        if "const" in schema or "enum" in schema:
            values = schema.get("enum", [schema.get("const")])
            return f"Literal[{', '.join(map(repr, values))}]"
        kind = schema.get("type")
        if kind == "array":
            items: JsonObject = schema.get("items", {})
            of = self.type_of(items, is_input=is_input)
            return f"Sequence[{of}]" if is_input else f"tuple[{of}, ...]"
        if kind == "string" and schema.get("format") == "date-time":
            return "datetime"
        if kind == "object":
            more: Any = schema.get("additionalProperties")
            if isinstance(more, dict) and more and not is_input:
                return f"dict[str, {self.type_of(cast('JsonObject', more))}]"
            return "JsonObject"
        return _SIMPLE.get(str(kind), "Json")

    def fields_of(self, schema: JsonObject) -> tuple[Mapping[str, JsonObject], set[str]]:
        """The properties of an object, and the names of those that are required."""
        if "$ref" in schema:
            schema = self._schemas[schema["$ref"].rpartition("/")[2]]
        return schema.get("properties", {}), set(schema.get("required", ()))

    def contract_of(self, schema: JsonObject) -> str:
        """The contract that a body is an author's form of; an object if there is none."""
        choices = schema.get("anyOf", [schema])
        fields, _ = self.fields_of(choices[0])
        same = (name for name, kind in _contracts().items() if fields and _aliases(kind) == set(fields))
        found = next(same, None)
        return f"{found} | JsonObject" if found else "JsonObject"

    def item_of(self, schema: JsonObject) -> str | None:
        """The type of the items of a page that has a next one."""
        fields, _ = self.fields_of(schema)
        return self.type_of(fields["items"]["items"]) if {"items", "next"} <= set(fields) else None

    def parts_and_answers(self) -> tuple[list[str], list[str]]:
        """The models that others have as parts, and those that only operations name."""
        used = {
            name
            for own, source in self.written.items()
            for name in self.written
            if name != own and name in _words(source)
        }
        return [name for name in self.written if name in used], [name for name in self.written if name not in used]

    def _named(self, name: str, *, is_input: bool) -> str:
        plain = name.partition("-")[0]
        schema = self._schemas[name]
        if plain in _contracts() or plain in _aliased():
            return f"{plain} | JsonObject" if is_input else plain
        if is_input:
            return "JsonObject" if "properties" in schema else self.type_of(schema, is_input=True)
        if "properties" not in schema:
            return self.type_of(schema)
        plain = plain.strip("_").replace("ListView_", "") + ("List" if plain.startswith("ListView_") else "")
        if plain not in self.written:
            self.written[plain] = ""  # its place, if it names itself
            source = self._model(plain, schema)
            del self.written[plain]
            self.written[plain] = source
        return plain

    def _model(self, name: str, schema: JsonObject) -> str:
        lines = [f"class {name}(Answer):", f'    """{_sentence(schema.get("description", f"{name}."))}"""', ""]
        required = set(schema.get("required", ()))
        fields = schema["properties"]
        for wire in sorted(fields, key=lambda each: each not in required):
            annotation = self.type_of(fields[wire])
            default = ""
            if wire not in required:
                annotation += "" if "None" in annotation.split(" | ") else " | None"
                default = " = None"
            lines.append(f"    {wire}: {annotation}{default}")
            if fields[wire].get("description"):
                lines.append(f'    """{_sentence(fields[wire]["description"])}"""')
        return "\n".join(lines) + "\n"


@cache
def _contracts() -> Mapping[str, type]:
    """The classes of contracts by name."""
    return dict(_defined())


@cache
def _aliased() -> Mapping[str, Any]:
    """The unions of contracts that the document names."""
    return {"StreamEvent": toolcrib.contracts.StreamEvent}


@cache
def _modules() -> tuple[Any, ...]:
    package = toolcrib.contracts
    return tuple(
        importlib.import_module(each.name) for each in pkgutil.walk_packages(package.__path__, "toolcrib.contracts.")
    )


def _defined() -> Iterator[tuple[str, type]]:
    for module in _modules():
        for name, found in inspect.getmembers(module, inspect.isclass):
            if found.__module__ == module.__name__ and not name.startswith("_"):
                yield name, found


def _aliases(kind: type) -> set[str]:
    fields = kind.model_fields if issubclass(kind, BaseModel) else {}
    return {each.alias or name for name, each in fields.items()}


def operations_of(schemas: Schemas) -> Iterator[Operation]:
    """All operations of the REST API."""
    for path, methods in document()["paths"].items():
        for method, described in methods.items():
            tag = described["tags"][-1]
            if tag not in LEFT_OUT and not path.startswith("/hooks"):
                group = GROUPS.get(tag, re.sub(r"[ -]", "_", tag))
                yield _operation(schemas, group, method, path, described)


def _operation(schemas: Schemas, group: str, method: str, path: str, described: JsonObject) -> Operation:
    responses = {status: each for status, each in described["responses"].items() if status < "300"}
    content = next(iter(responses.values())).get("content", {})
    is_stream = "text/event-stream" in content
    made = Operation(
        group,
        _method_name(group, described["operationId"]),
        method.upper(),
        path,
        inspect.cleandoc(described.get("description") or described["summary"]),
        _returns(schemas, responses),
        is_stream=is_stream,
    )
    made.item = schemas.item_of(content.get("application/json", {}).get("schema", {}))
    for each in described.get("parameters", ()):
        _add_parameter(schemas, made, each)
    body = described.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body is not None:
        _add_body(schemas, made, body, is_required=described["requestBody"].get("required", False))
    if method == "post":
        made.headers.append(Argument("idempotency_key", "Idempotency-Key", "str | None", is_required=False))
    return made


def _returns(schemas: Schemas, responses: Mapping[str, JsonObject]) -> str:
    kinds = list[str]()
    for status, response in responses.items():
        content = response.get("content", {})
        if "text/event-stream" in content:
            kinds.append(schemas.type_of(content["text/event-stream"]["schema"]))
        elif "application/json" in content:
            kinds.append(schemas.type_of(content["application/json"]["schema"]))
        else:
            kinds.append("None" if status == "204" else "bytes")
    return " | ".join(dict.fromkeys(part for kind in kinds for part in kind.split(" | ")))


def _add_parameter(schemas: Schemas, made: Operation, described: JsonObject) -> None:
    if "$ref" in described:
        return
    name, wire = described["name"].replace("-", "_"), described["name"]
    if described["in"] == "header":
        if wire == "if-match":
            made.headers.append(Argument("if_match", "If-Match", "int | str | None", is_required=False))
        elif wire in {"range", "if-range"}:
            made.headers.append(Argument(name, wire.title(), "str | None", is_required=False))
        return
    annotation = schemas.type_of(described["schema"], is_input=True)
    is_required = described.get("required", False)
    argument = Argument(
        _safe(name), wire, _optional(annotation, is_required), is_required, described.get("description", "")
    )
    (made.places if described["in"] == "path" else made.query).append(argument)


def _add_body(schemas: Schemas, made: Operation, schema: JsonObject, *, is_required: bool) -> None:
    fields, required = schemas.fields_of(schema)
    if not fields or len(fields) > SMALL or made.name.startswith("accept"):
        name = "changes" if made.method == "PATCH" else "definition"
        made.body = Argument(name, "", schemas.contract_of(schema), is_required=True)
        return
    taken = {each.wire for each in made.places}
    for wire in sorted(fields, key=lambda each: each not in required):
        if wire in taken and made.method == "PUT":
            made.fields.append(Argument(_safe(wire), wire, "", is_required=True))  # the path has it
            continue
        needed = wire in required and is_required
        annotation = _optional(schemas.type_of(fields[wire], is_input=True), needed)
        name = _safe(wire) if wire not in taken else f"new_{wire}"
        made.fields.append(Argument(name, wire, annotation, needed, fields[wire].get("description", "")))


def _optional(annotation: str, is_required: bool) -> str:  # noqa: FBT001 - of a parameter
    return annotation if is_required or "None" in annotation.split(" | ") else f"{annotation} | None"


def _safe(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) or name in _BUILTINS - {"type", "id", "format", "filter"} else name


def _method_name(group: str, operation: str) -> str:
    nouns = NOUNS.get(group, (group.removesuffix("s"),))
    for noun in nouns:
        shorter = re.sub(rf"(^|_){noun}s?(?=_|$)", r"\1", operation)
        shorter = re.sub(r"__+", "_", shorter).strip("_")
        if shorter != operation and shorter and not keyword.iskeyword(shorter):
            return shorter
    return operation


# Source ---------------------------------------------------------------------------------------------------------------


def _sentence(text: str) -> str:
    lines = inspect.cleandoc(text).replace('"""', "'''").replace("\\", "\\\\").split("\n\n")[0].replace("\n", " ")
    return "\n    ".join(textwrap.wrap(lines, 110))


def _signature(made: Operation, *, each: bool = False) -> tuple[list[str], list[str]]:
    """Positional and keyword parameters."""
    positional = [f"{place.name}: str" for place in made.places]
    if made.body is not None:
        positional.append(f"{made.body.name}: {made.body.annotation}")
    keywords = [
        f"{argument.name}: {argument.annotation}{'' if argument.is_required else ' = None'}"
        for argument in sorted((*made.query, *made.fields, *made.headers), key=lambda one: not one.is_required)
        if argument.annotation and not (each and argument.wire == made.cursor)
    ]
    return positional, keywords


def _request(made: Operation, *, each: bool = False) -> str:
    parts = [f'method="{made.method}"', f'path="{made.path}"']
    if made.places:
        parts.append(f"place={{{', '.join(f'{place.wire!r}: {place.name}' for place in made.places)}}}")
    query = [one for one in made.query if not (each and one.wire == made.cursor)]
    if query:
        parts.append(f"query={_given(query)}")
    if made.body is not None:
        parts.append(f"body={made.body.name}")
    elif made.fields:
        parts.append(f"body={_given(made.fields)}")
    if made.headers:
        parts.append(f"headers={{{', '.join(f'{one.wire!r}: {one.name}' for one in made.headers)}}}")
    return f"ApiRequest({', '.join(parts)})"


def _given(arguments: Iterable[Argument]) -> str:
    pairs = [(argument.wire, argument.name) for argument in arguments]
    if all(wire.isidentifier() and not keyword.iskeyword(wire) for wire, _ in pairs):
        return f"given({', '.join(f'{wire}={name}' for wire, name in pairs)})"
    return f"given(**{{{', '.join(f'{wire!r}: {name}' for wire, name in pairs)}}})"


def _names(made: Operation, *, each: bool = False) -> str:
    positional, keywords = _signature(made, each=each)
    names = [part.partition(":")[0] for part in positional]
    return ", ".join([*names, *(f"{name}={name}" for name in (part.partition(":")[0] for part in keywords))])


def _doc(made: Operation, *, each: bool = False) -> str:
    text = (
        made.doc if not each else f"{made.doc.splitlines()[0]}\n\nAll of them: the next page is read when it is needed."
    )
    lines = text.replace("\\", "\\\\").splitlines()
    body = "\n".join([lines[0], *(f"        {line}" if line else "" for line in lines[1:])])
    return f'"""{body}\n        """' if len(lines) > 1 else f'"""{body}"""'


def _method(made: Operation, *, is_sync: bool, each: bool = False) -> str:
    positional, keywords = _signature(made, each=each)
    star = ["*"] if keywords else []
    parameters = ", ".join(["self", *positional, *star, *keywords])
    name = f"each{made.name.removeprefix('list')}" if each else made.name
    name = "each" if each and made.name == "list" else name
    streams = made.is_stream or each
    result = (
        f"{'Iterator' if is_sync else 'AsyncGenerator'}[{made.item if each else made.returns}]"
        if streams
        else made.returns
    )
    prefix = "" if is_sync or streams else "async "
    lines = [f"    {prefix}def {name}({parameters}) -> {result}:", f"        {_doc(made, each=each)}"]
    if is_sync:
        verb = "iterate" if streams else "run"
        arguments = _names(made, each=each)
        lines.append(f"        return self._loop.{verb}(self._api.{name}{', ' if arguments else ''}{arguments})")
    else:
        kind = made.returns
        request = _request(made, each=each)
        if each:
            lines.append(f'        return self._transport.each({kind}, {request}, "{made.cursor}")')
        elif made.is_stream:
            lines.append(f"        return self._transport.stream({kind}, {request})")
        else:
            lead = "" if kind == "None" else "return "
            lines.append(f"        {lead}await self._transport.send({kind}, {request})")
    return "\n".join(lines)


def _class(group: str, operations: list[Operation], *, is_sync: bool) -> str:
    name = "".join(word.capitalize() for word in group.split("_"))
    doc = f"The operations on {group.replace('_', ' ')}."
    if is_sync:
        head = f'class {name}Api(SyncApi[asynchronous.Async{name}Api]):\n    """{doc}"""\n'
    else:
        head = f'class Async{name}Api(AsyncApi):\n    """{doc}"""\n'
    methods = list[str]()
    for made in operations:
        methods.append(_method(made, is_sync=is_sync))
        if made.cursor:
            methods.append(_method(made, is_sync=is_sync, each=True))
    return head + "\n" + "\n\n".join(methods) + "\n"


def sources() -> dict[Path, str]:
    """All modules by path."""
    schemas = Schemas(document()["components"]["schemas"])
    groups: dict[str, list[Operation]] = {}
    for made in operations_of(schemas):
        groups.setdefault(made.group, []).append(made)
    modules = {name: [group for group in members if group in groups] for name, members in MODULES.items()}
    placed = {group for members in MODULES.values() for group in members}
    modules |= {group: [group] for group in groups if group not in placed}
    for made in (each for members in groups.values() for each in members):
        same = [each for each in groups[made.group] if each.name == made.name]
        if len(same) > 1:
            msg = f"two operations would be client.{made.group}.{made.name}; name one of them otherwise: {same}"
            raise ValueError(msg)
    parts, answers = schemas.parts_and_answers()
    found = {
        FOLDER / "answer_parts.py": _answers(
            "What answers of the REST API consist of, beside contracts.",
            "\n\n".join((_ANSWER, *(schemas.written[name] for name in parts))),
            {"pydantic": "BaseModel ConfigDict"},
        ),
        FOLDER / "answers.py": _answers(
            "Answers of the REST API that are no contracts.",
            "\n\n".join(schemas.written[name] for name in answers),
            {"toolcrib.client.answer_parts": " ".join(("Answer", *parts))},
        ),
    }
    for name, members in modules.items():
        for is_sync in (False, True):
            folder = "blocking" if is_sync else "operations"
            found[FOLDER / folder / f"{name}.py"] = _module(
                name, [(each, groups[each]) for each in members], is_sync=is_sync, schemas=schemas
            )
    found[FOLDER / "clients.py"] = _clients(modules)
    return {path: _formatted(source, path) for path, source in found.items()}


_ANSWER: Final = '''class Answer(BaseModel):
    """A part of an answer; fields of newer servers are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)
'''


def _answers(doc: str, text: str, more: Mapping[str, str]) -> str:
    head = _HEAD.format(doc=doc)
    return head + _imports(text, more) + "\n\n" + text


def _module(name: str, members: list[tuple[str, list[Operation]]], *, is_sync: bool, schemas: Schemas) -> str:
    text = "\n\n".join(_class(group, operations, is_sync=is_sync) for group, operations in members)
    what = "synchronous " if is_sync else ""
    head = _HEAD.format(doc=f"The {what}operations on {', '.join(group.replace('_', ' ') for group, _ in members)}.")
    parts, answers = schemas.parts_and_answers()
    more = {"toolcrib.client.answer_parts": " ".join(parts), "toolcrib.client.answers": " ".join(answers)}
    if is_sync:
        more["toolcrib.client.groups"] = "SyncApi"
    else:
        more |= {"toolcrib.client.groups": "AsyncApi", "toolcrib.client.transport": "ApiRequest given"}
    imports = _imports(text, more)
    if is_sync:
        imports += f"\nfrom toolcrib.client.operations import {name} as asynchronous"
    return head + imports + "\n\n" + text


def _words(source: str) -> set[str]:
    """The names in a source, without those in its docstrings."""
    return set(re.findall(r"\b[A-Za-z_][A-Za-z_0-9]*\b", re.sub(r'"""(?:.|\n)*?"""', "", source)))


def _imports(text: str, more: Mapping[str, str]) -> str:
    words = _words(text)
    known = {"collections.abc": "AsyncGenerator Iterator Sequence", "datetime": "datetime", "typing": "Literal", **more}
    lines = list[str]()
    for module, names in known.items():
        used = sorted(words & set(names.split()))
        if used:
            lines.append(f"from {module} import {', '.join(used)}")
    exported = set(toolcrib.contracts.__all__)
    written = set(re.findall(r"^class (\w+)", text, re.MULTILINE))
    for word in sorted(words - written - set(" ".join(known.values()).split())):
        if word in exported:
            lines.append(f"from toolcrib.contracts import {word}")
        elif word in _contracts():
            lines.append(f"from {_contracts()[word].__module__} import {word}")
    return "\n".join(lines)


def _clients(modules: Mapping[str, list[str]]) -> str:
    groups = sorted((group, module) for module, members in modules.items() for group in members)
    text = _HEAD.format(doc="The clients of a server: each group of operations is an attribute.")
    text += "from functools import cached_property\nfrom typing import Self\n\n"
    text += "from toolcrib.client.groups import AsyncBase, SyncBase\n"
    for group, module in groups:
        name = "".join(word.capitalize() for word in group.split("_"))
        text += f"from toolcrib.client.blocking.{module} import {name}Api\n"
        text += f"from toolcrib.client.operations.{module} import Async{name}Api\n"
    for is_sync in (False, True):
        kind, base = ("Client", "SyncBase") if is_sync else ("AsyncClient", "AsyncBase")
        text += f"\n\nclass {kind}({base}):\n    {_CLIENT_DOC[kind]}\n"
        for group, _ in groups:
            name = "".join(word.capitalize() for word in group.split("_"))
            made = (
                f"{name}Api(self._asynchronous.{group}, self._loop)" if is_sync else f"Async{name}Api(self._transport)"
            )
            text += f"\n    @cached_property\n    def {group}(self) -> {'' if is_sync else 'Async'}{name}Api:\n"
            text += f'        """The operations on {group.replace("_", " ")}."""\n        return {made}\n'
        if is_sync:
            text += "\n    @cached_property\n    def _asynchronous(self) -> AsyncClient:\n"
            text += "        return AsyncClient.around(self._transport)\n"
    return text


_ARGUMENTS: Final = """
    Args:
        url: Of the server: `http://127.0.0.1:8700`; else the variable `TOOLCRIB_URL`.
        api_key: `tcb_…`; else the variable `TOOLCRIB_API_KEY`.
        timeout_s: Seconds for one request, of which a run that is waited for has a part; streams have no limit.
        retries: How often a request is sent again after a cut connection, or if the server is not available.
"""
_CLIENT_DOC: Final = {
    "AsyncClient": f'''"""The asynchronous client of a server.
{_ARGUMENTS}
    Example:
        from toolcrib.client import AsyncClient

        async def deals(company: str) -> object:
            async with AsyncClient("http://127.0.0.1:8700", api_key="tcb_...") as client:
                answer = await client.tools.invoke("search_deals", params={{"company": company}})
                return answer.data
    """''',
    "Client": f'''"""The synchronous client of a server, for scripts, notebooks and threads.
{_ARGUMENTS}
    Example:
        from toolcrib.client import Client

        def deals(company: str) -> object:
            with Client("http://127.0.0.1:8700", api_key="tcb_...") as client:
                return client.tools.invoke("search_deals", params={{"company": company}}).data
    """''',
}


def _formatted(source: str, path: Path) -> str:
    for command in (["check", "--fix", "--quiet", "--exit-zero"], ["format", "--quiet"]):
        made = subprocess.run(
            [str(Path(sys.executable).parent / "ruff"), *command, "--stdin-filename", str(path), "-"],
            input=source, capture_output=True, text=True, check=True,
        )  # fmt: skip
        source = made.stdout
    return source


def main() -> int:
    """Write the modules, or compare them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    is_check = parser.parse_args().check
    wanted = sources()
    stale = [path for path, source in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != source]
    old = {each for folder in ("operations", "blocking") for each in (FOLDER / folder).glob("*.py")} - set(wanted)
    extra = sorted(each for each in old if each.name != "__init__.py")
    if is_check:
        for path in (*stale, *extra):
            print(f"{path} is not as it would be written; run `python -m tools.rest_client`")
        return bool(stale or extra)
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path], encoding="utf-8")
    for path in extra:
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
