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


def test_without_a_name_they_are_listed_and_an_unknown_one_is_refused(tmp_path: Path):
    store = f"sqlite:///{tmp_path / 'crib.db'}"
    offered = toolcrib("tool", "add", store=store)
    unknown = toolcrib("tool", "add", "curl", store=store)

    assert [line.partition(":")[0] for line in offered.stdout.splitlines()] == ["http_get", "http_request", "wget"]
    assert unknown.exit_code != 0
    assert not (tmp_path / "crib.db").exists()
