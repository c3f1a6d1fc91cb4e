"""`toolcrib tool add`: tools that come with Toolcrib, for a store that any process may use."""

import json
from pathlib import Path

import pytest

from tests.unit.cli.command import toolcrib

pytestmark = pytest.mark.requirement("builtin_tools.opt_in")


def test_tools_are_added_by_name_and_no_other(tmp_path: Path):
    store = f"sqlite:///{tmp_path / 'crib.db'}"
    added = toolcrib("tool", "add", "wget", "--json", store=store)
    listed = toolcrib("tool", "list", "--json", store=store)

    assert added.exit_code == 0
    assert [tool["definition"]["name"] for tool in json.loads(listed.stdout)] == ["wget"]


def test_an_unknown_one_is_refused_with_those_that_there_are(tmp_path: Path):
    store = f"sqlite:///{tmp_path / 'crib.db'}"
    unknown = toolcrib("tool", "add", "curl", store=store)

    assert all(name in unknown.stderr for name in ("http_get", "http_request", "wget"))
    assert unknown.exit_code != 0
    assert not (tmp_path / "crib.db").exists()
