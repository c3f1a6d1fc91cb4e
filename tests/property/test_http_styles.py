"""What OpenAPI's styles write can be read back, by decoders that share nothing with the encoder."""

from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.infrastructure.net._urls import parse
from toolcrib.kinds.http.runtime.styles import header_value, path_piece, query_pairs
from toolcrib.kinds.http.shape import HttpParameter

pytestmark = pytest.mark.requirement("runtime_http.styles_readable")

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
LIST = st.lists(TEXT, min_size=1, max_size=4)
OBJECT = st.dictionaries(TEXT.filter(bool), TEXT, min_size=1, max_size=4)
TREE = st.recursive(
    TEXT, lambda inner: st.lists(inner, min_size=1, max_size=3) | st.dictionaries(TEXT, inner, min_size=1, max_size=3)
)
DELIMITED = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C", "tabDelimited": "%09"}
SETTLED = {"spaceDelimited": " ", "pipeDelimited": "|", "tabDelimited": "\t"}


def parameter(style: Any, place: Any, *, explode: bool, name: str = "p") -> HttpParameter:
    return HttpParameter(name=name, argument="a", place=place, style=style, explode=explode)


def query(found: HttpParameter, value: Any) -> str:
    """The query as it goes out, after the network layer had its say."""
    written = "&".join(f"{name}={text}" for name, text in query_pairs(found, value))
    return parse(f"https://api.test/?{written}").raw_query_string


def unflatten(pieces: list[str]) -> dict[str, str]:
    return dict(zip(pieces[::2], pieces[1::2], strict=True))


@given(name=TEXT.filter(bool), value=TEXT)
def test_a_scalar_in_a_query(name: str, value: str) -> None:
    found = query(parameter("form", "query", explode=True, name=name), value)
    assert parse_qsl(found, keep_blank_values=True) == [(name, value)]


@given(value=LIST)
def test_an_exploded_list_in_a_query(value: list[str]) -> None:
    found = query(parameter("form", "query", explode=True), value)
    assert parse_qsl(found, keep_blank_values=True) == [("p", item) for item in value]


@given(value=OBJECT)
def test_an_exploded_object_in_a_query(value: dict[str, str]) -> None:
    found = query(parameter("form", "query", explode=True), value)
    assert dict(parse_qsl(found, keep_blank_values=True)) == value


@given(style=st.sampled_from(sorted(DELIMITED)), value=LIST)
def test_a_delimited_list_in_a_query(style: str, value: list[str]) -> None:
    name, _, text = query(parameter(style, "query", explode=False), value).partition("=")
    # Where the delimiter itself is encoded, only items without it can be told apart.
    if style in SETTLED:
        value = [item.replace(SETTLED[style], "_") for item in value]
        text = query(parameter(style, "query", explode=False), value).partition("=")[2]
    assert (name, [unquote(item) for item in text.split(DELIMITED[style])]) == ("p", value)


@given(value=OBJECT)
def test_a_delimited_object_in_a_query(value: dict[str, str]) -> None:
    text = query(parameter("form", "query", explode=False), value).partition("=")[2]
    assert unflatten([unquote(piece) for piece in text.split(",")]) == value


@given(value=st.dictionaries(TEXT.filter(lambda key: not {"[", "]"} & set(key)), TREE, min_size=1, max_size=3))
def test_a_deep_object_in_a_query(value: dict[str, Any]) -> None:
    found = query(parameter("deepObject", "query", explode=True), value)
    leaves = parse_qsl(found, keep_blank_values=True)
    assert sorted(leaves) == sorted(flattened("p", value))


def flattened(name: str, value: Any) -> list[tuple[str, str]]:
    """The leaves of a tree with the brackets that lead to each."""
    if isinstance(value, str):
        return [(name, value)]
    entries: Any = value.items() if hasattr(value, "items") else enumerate(value)
    return [leaf for key, member in entries for leaf in flattened(f"{name}[{key}]", member)]


@given(style=st.sampled_from(["simple", "label", "matrix"]), explode=st.booleans(), value=LIST)
def test_a_list_in_a_path(style: str, explode: bool, value: list[str]) -> None:
    piece = path_piece(parameter(style, "path", explode=explode), value)
    assert not {"/", "?", "#"} & set(piece)
    if style == "label" and explode:
        # RFC 6570 does not encode the dot that separates: such a list is only readable without dots.
        value = [item.replace(".", "_") for item in value]
        assert [
            unquote(item) for item in path_piece(parameter(style, "path", explode=True), value)[1:].split(".")
        ] == value
        return
    text = piece.removeprefix({"simple": "", "label": ".", "matrix": ";p="}[style])
    separator = ";p=" if style == "matrix" and explode else ","
    if style == "matrix" and piece == ";p":
        text = ""
    assert [unquote(item) for item in text.split(separator)] == value


@given(explode=st.booleans(), value=OBJECT)
def test_an_object_in_a_path(explode: bool, value: dict[str, str]) -> None:
    piece = path_piece(parameter("simple", "path", explode=explode), value)
    if explode:
        assert {unquote(k): unquote(v) for k, _, v in (pair.partition("=") for pair in piece.split(","))} == value
    else:
        assert unflatten([unquote(item) for item in piece.split(",")]) == value


@given(value=st.lists(st.text("abc-1", min_size=1), min_size=1))
def test_a_list_in_a_header(value: list[str]) -> None:
    assert header_value(parameter("simple", "header", explode=False), value).split(",") == value
