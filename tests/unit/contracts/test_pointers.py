"""JSON pointers lead to what RFC 6901 says, and nowhere else."""

import pytest

from toolcrib.contracts import Json, escape_name, pointer_names, resolve_pointer, unescape_name

pytestmark = pytest.mark.requirement("contracts.pointers")

DOCUMENT: Json = {"deals": [{"a/b": 1}, {"m~n": 2}], "": {"": 3}, "0": 4}


@pytest.mark.parametrize(
    ("pointer", "found"),
    [
        ("", DOCUMENT),
        ("#", DOCUMENT),
        ("/deals/0/a~1b", 1),
        ("#/deals/1/m~0n", 2),
        ("//", 3),
        ("/0", 4),
    ],
)
def test_a_pointer_leads_to_a_value(pointer: str, found: Json) -> None:
    assert resolve_pointer(DOCUMENT, pointer) == found


@pytest.mark.parametrize(
    "pointer", ["/deals/2", "/deals/-", "/deals/x", "/deals/²", "/0/x", "/nothing", "/deals/" + "9" * 5000]
)
def test_a_pointer_to_nothing_leads_to_null(pointer: str) -> None:
    assert resolve_pointer(DOCUMENT, pointer) is None


@pytest.mark.parametrize("name", ["plain", "a/b", "m~n", "~1", "~01", ""])
def test_a_name_comes_back_from_a_pointer_as_it_was(name: str) -> None:
    assert unescape_name(escape_name(name)) == name
    assert pointer_names(f"/first/{escape_name(name)}") == ["first", name]
