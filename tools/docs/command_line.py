"""Write `docs/command-line.md` from the commands: `python -m tools.docs.command_line`."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from toolcrib.interfaces.cli.app import STATUSES
from toolcrib.interfaces.cli.render.outputs import PROTOCOLS, output_schema
from tools.docs import commands, pages

PAGE: Final = Path("docs/command-line.md")
SCHEMAS: Final = "schemas/cli.json"
VERBS: Final = ("list", "show", "add", "set", "remove")
"""What every group of things has, where the act exists."""
NOT_LISTED: Final[Mapping[str, str]] = {
    "demo": "demonstrations are no things in a store",
    "restate": "it prints one configuration and keeps nothing",
    "store": "a command has one store, which `show` describes",
    "upgrade": "it checks a change and keeps nothing",
}
"""Groups without `list`, each with the reason."""
NOT_SHOWN: Final[Mapping[str, str]] = {
    "demo": "as above",
    "restate": "as above",
    "secret": "no command prints the value of a secret; `list` has all else",
    "upgrade": "as above",
}
"""Groups without `show`, each with the reason."""
_SCHEMA: Final = output_schema()
_INTRODUCTION: Final = """# The command line

This page is made from the commands: `python -m tools.docs.command_line`. For a first tour, see
[getting started](getting-started.md).

- `-h` or `--help` prints the options of a command, with an example.
- {statuses}
- An id can be given whole or by its first characters, at least eight. `latest` means the newest run, instance or
  conversation, or the only approval that waits.
- `toolcrib completion bash --install` completes commands, options, names and ids; also `zsh` and `fish`.
- Long work shows its progress on stderr: a bar at a terminal, lines elsewhere.

## JSON

Every command has `--json`. Then it prints one JSON document on stdout and nothing else; `up` and `worker` print one
object when they are ready, and `agent run --stream` prints one object per line. Every document is described by the
[JSON Schema]({schemas}) of its command, which `toolcrib schema cli` prints too. New keys and secrets are in the
documents of `key add` and `secret new-key` only.

An error is one JSON object on stderr, and stdout stays empty. The exit status is the same as without `--json`.

```json
{{
  "error": {{
    "code": "not_found",
    "message": "…",
    "next_step": "see toolcrib run list for what there is",
    "exit_status": 1,
    "problems": []
  }}
}}
```

With `--json`, no command asks a question. A command that would ask is refused until you add `--yes`.

## Verbs

| verb | does |
|---|---|
| `list` | lists the things of a kind |
| `show` | prints one thing |
| `add` | makes a thing, or a new revision of it, usually from a file |
| `set` | gives a named thing its content, from options or stdin, whether or not it exists |
| `remove` | removes a thing |

Every other act has a verb of its own, such as `publish`, `run` or `approve`. The verbs of other programs
({synonyms}) are answered with the verb to use.
"""


def page() -> str:
    """The page."""
    whole, *found = commands.tree()
    synonyms = ", ".join(f"`{name}`" for name in ("create", "delete", "get", "ls", "rm", "revoke", "update"))
    lines = [_INTRODUCTION.format(statuses=STATUSES, schemas=SCHEMAS, synonyms=synonyms), *_verbs(found), ""]
    lines += ["## All commands", "", "| command | does |", "|---|---|"]
    for one in found:
        if not one.is_group:
            lines.append(f"| [`{_name(one)}`](#{_anchor(one)}) | {_summary(one)} |")
    lines += ["", "## Options of toolcrib itself", "", *_options(whole)]
    for one in found:
        lines += ["", f"{'##' if len(one.words) == 1 else '###'} toolcrib {_name(one)}", "", *_text(one)]
        lines += [] if one.is_group else _command(one)
    return pages.with_links(PAGE.name, "\n".join(lines) + "\n")


def _verbs(found: "list[commands.Command]") -> Iterator[str]:
    """The table of verbs by group, and the exceptions."""
    groups: dict[str, list[str]] = defaultdict(list)
    for one in found:
        if len(one.words) > 1:
            groups[one.words[0]].append(one.words[1])
    yield from [f"| group | {' | '.join(VERBS)} | other verbs |", f"|---|{'---|' * len(VERBS)}---|"]
    for name, below in sorted(groups.items()):
        cells = ["yes" if verb in below else "" for verb in VERBS]
        others = ", ".join(f"`{verb}`" for verb in sorted(below) if verb not in VERBS)
        yield f"| [`{name}`](#toolcrib-{name}) | {' | '.join(cells)} | {others} |"
    yield ""
    for what, reasons in (("list", NOT_LISTED), ("show", NOT_SHOWN)):
        yield f"Groups without `{what}`: " + "; ".join(f"`{name}` ({why})" for name, why in reasons.items()) + "."
        yield ""
    yield "`tool list` has agents and workflows too, because they can be called like tools."


def _command(one: commands.Command) -> Iterator[str]:
    yield from ["```text", str(one.command.epilog), "```", "", *_options(one)]
    protocol = PROTOCOLS.get(_name(one))
    yield f"Output: {protocol}." if protocol else f"Output: [`{_name(one)}`]({SCHEMAS}), {_shape(one)}."


def _shape(one: commands.Command) -> str:
    schema = _SCHEMA["properties"][_name(one)]
    if schema.get("type") == "array":
        return f"a list of {_title(schema['items'])}"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_title(each) for each in schema["anyOf"]))
    return _title(schema)


def _title(schema: Mapping[str, Any]) -> str:
    if schema.get("type") == "array":
        return "a list of objects"
    named = str(schema.get("$ref", "")).rpartition("/")[2]
    return f"`{named}`" if named else str(schema.get("type", "any value"))


def _options(one: commands.Command) -> Iterator[str]:
    shown = [each for each in one.command.params if not getattr(each, "hidden", False)]
    yield from ["| argument or option | is |", "|---|---|"]
    for each in shown:
        is_argument = each.param_type_name == "argument"
        named = str(each.metavar or each.name).strip("{}[]").upper()
        name = named if is_argument else ", ".join([*each.opts, *each.secondary_opts])
        needed = " Required." if each.required else ""
        yield f"| `{_cell(name)}` | {_cell(getattr(each, 'help', None) or '')}{needed} |"
    yield ""


def _cell(text: str) -> str:
    return re.sub(r"([<|])", r"\\\1", " ".join(text.split()))


def _text(one: commands.Command) -> Iterator[str]:
    for paragraph in (one.command.help or "").split("\n\n"):
        yield from [re.sub(r"(?<!`)(\$\{\w+:NAME\})", r"`\1`", " ".join(paragraph.split())), ""]


def _summary(one: commands.Command) -> str:
    return _cell(next(_text(one)))


def _name(one: commands.Command) -> str:
    return " ".join(one.words)


def _anchor(one: commands.Command) -> str:
    return f"toolcrib-{'-'.join(one.words)}"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
