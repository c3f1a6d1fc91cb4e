"""Single members of other programs' JSON files are changed; all else of the text stays."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.interfaces.cli.support.json_edit import NotJsonError, append_item, read_json, remove_at, set_member

pytestmark = pytest.mark.requirement("cli.mcp_install")

COMMENTED = """{
    // my servers
    "servers": {
        "files": { "command": "files" }, // the first
        /* the second */
        "mail": { "command": "mail" },
    },
    "inputs": []
}
"""
KEYS = st.text(st.sampled_from('ab{}[]",:/\\* \n'), max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


def test_a_member_is_added_changed_and_removed_beside_comments() -> None:
    added = set_member(COMMENTED, ("servers", "crib"), {"command": "toolcrib"}, comments=True)
    changed = set_member(added, ("servers", "crib"), {"command": "other"}, comments=True)
    removed = remove_at(changed, ("servers", "crib"), comments=True)

    assert (
        '        "mail": { "command": "mail" },\n        "crib": {\n            "command": "toolcrib"\n        }'
        in added
    )
    assert all(comment in changed for comment in ("// my servers", "// the first", "/* the second */"))
    assert read_json(removed, comments=True) == read_json(COMMENTED, comments=True)
    assert remove_at(COMMENTED, ("servers", "crib"), comments=True) == COMMENTED
    assert remove_at(COMMENTED, ("nothing", "crib"), comments=True) == COMMENTED


def test_items_are_appended_and_removed() -> None:
    one = append_item(COMMENTED, "inputs", {"id": "a"}, comments=True)
    two = append_item(one, "inputs", {"id": "b"}, comments=True)
    assert read_json(two, comments=True)["inputs"] == [{"id": "a"}, {"id": "b"}]
    assert read_json(remove_at(two, ("inputs", 0), comments=True), comments=True)["inputs"] == [{"id": "b"}]
    assert read_json(append_item("{}", "inputs", 1)) == {"inputs": [1]}
    assert remove_at(two, ("inputs", 7), comments=True) == two
    with pytest.raises(NotJsonError, match="'inputs' is not an array"):
        append_item('{"inputs": {}}', "inputs", 1)


@given(st.dictionaries(KEYS, VALUES, max_size=4), KEYS, KEYS, VALUES, st.sampled_from([None, 2, "\t"]))
def test_whatever_a_file_has_only_the_member_changes(
    content: dict[str, Any], outer: str, key: str, value: Any, indent: int | str | None
) -> None:
    content = {**content, outer: {"other": 1}}
    text = json.dumps(content, indent=indent, ensure_ascii=False)
    changed = set_member(text, (outer, key), value)
    assert json.loads(changed) == {**content, outer: {"other": 1, key: value}}
    back = json.loads(remove_at(changed, (outer, key)))
    assert back == {**content, outer: {name: 1 for name in ("other",) if name != key}}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1', "line 1: a comma is missing"),
        ('{"a": }', "a value is expected"),
        ('{"a" 1}', "a colon is expected"),
        ("{a: 1}", "a name in double quotes"),
        ('{"a": 1}\nx', "line 2: text follows the document"),
        ('{"a": 1, "a": 2}', "'a' is there twice"),
        ('{"a": 1,}', "a comma before the end"),
        ('{\n// no\n"a": 1}', "a comment"),
        ('{"a": 01}', "not JSON"),
        ("[" * 200, "more than 100 values"),
        ('{"a": "\\x"}', "not JSON"),
    ],
)
def test_what_is_not_json_is_refused_with_its_line(text: str, problem: str) -> None:
    with pytest.raises(NotJsonError, match=problem):
        read_json(text)


def test_what_is_not_an_object_gets_no_member() -> None:
    with pytest.raises(NotJsonError, match="servers is not an object"):
        set_member('{"servers": []}', ("servers", "crib"), {})
    with pytest.raises(NotJsonError, match="the document is not an object"):
        set_member("[]", ("servers", "crib"), {})
    assert read_json(set_member("", ("servers", "crib"), {})) == {"servers": {"crib": {}}}
    assert read_json("") == {}
