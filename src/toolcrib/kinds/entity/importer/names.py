"""Derives names of tools and fields from names of tables and columns: snake case, and English singular and plural."""

import re
import unicodedata
from typing import Final

_EDGES: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9]+")
_IRREGULAR: Final = {"person": "people", "child": "children", "man": "men", "woman": "women", "foot": "feet"}
_SAME: Final = frozenset({"data", "equipment", "information", "metadata", "news", "series", "species"})
_SIBILANT: Final = ("s", "x", "z", "ch", "sh")
_ES: Final = ("sses", "xes", "ches", "shes", "zzes", "tuses", "nuses", "ruses", "puses")
_ENDS_IN_S: Final = ("ss", "us", "is")

# Operators and literals of OData 4.01: a field of such a name could not be told from them.
_RESERVED: Final = frozenset(
    {"add", "and", "div", "divby", "eq", "false", "ge", "gt", "has", "in", "le", "lt"}
    | {"mod", "mul", "ne", "not", "null", "or", "sub", "true", "INF", "NaN"}
)


def snake(name: str) -> str:
    """`OrderLine` and `order-line` as `order_line`."""
    return _ILLEGAL.sub("_", _EDGES.sub("_", _plain(name))).strip("_").lower()


def plural_of(name: str) -> str:
    """The plural of a name in snake case, formed on its last word."""
    head, word = _last_word(name)
    if word in _SAME or word in _IRREGULAR.values():
        return name
    if word in _IRREGULAR:
        return head + _IRREGULAR[word]
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return f"{head}{word[:-1]}ies"
    return f"{name}es" if word.endswith(_SIBILANT) else f"{name}s"


def singular_of(name: str) -> str:
    """The singular of a name in snake case; the name itself if it is singular."""
    head, word = _last_word(name)
    one = next((one for one, many in _IRREGULAR.items() if many == word), None)
    if one is not None:
        return head + one
    if word in _SAME or not word.endswith("s") or word.endswith(_ENDS_IN_S):
        return name
    if word.endswith("ies") and len(word) > 4:
        return f"{head}{word[:-3]}y"
    return name[:-2] if word.endswith(_ES) else name[:-1]


def field_names(columns: list[str]) -> list[str]:
    """One field name per column, `[A-Za-z_][A-Za-z0-9_]*`, none twice and none a word of the filter language."""
    names: list[str] = []
    for column in columns:
        name = re.sub(r"[^A-Za-z0-9_]+", "_", _plain(column)) or "_"
        if name[0].isdigit() or name in _RESERVED:
            name = f"_{name}"
        number, unique = 2, name
        while unique in names:
            unique, number = f"{name}_{number}", number + 1
        names.append(unique)
    return names


def _plain(name: str) -> str:
    """Letters without their marks: `größe` as `grosse`."""
    parts = unicodedata.normalize("NFKD", name.replace("ß", "ss"))
    return "".join(part for part in parts if not unicodedata.combining(part))


def _last_word(name: str) -> tuple[str, str]:
    head, underscore, word = name.rpartition("_")
    return head + underscore, word
