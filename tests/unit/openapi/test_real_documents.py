"""Real documents: Stripe, Slack, HubSpot and the examples of the specification's community."""

from pathlib import Path

import orjson
import pytest

from tests.unit.openapi.fidelity import silent_losses
from toolcrib.kinds.dispatch import check_tool
from toolcrib.kinds.http.openapi import import_openapi

FOLDER = Path(__file__).parents[4] / "shared" / "data" / "openapi"
FILES = sorted(FOLDER.glob("*.json")) if FOLDER.is_dir() else []
MOST_LEAVES = 40

pytestmark = [
    pytest.mark.requirement("providers.real_documents"),
    pytest.mark.skipif(not FILES, reason=f"the collection of real documents is not at {FOLDER}"),
]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_operation_of_a_real_document_is_callable_and_its_schemas_are_valid(file: Path) -> None:
    api = import_openapi(file.read_bytes(), name="api", base_url="https://api.test")
    assert api.tools
    assert api.report.summary()["left_out"] == 0
    for tool in api.tools:
        check_tool(tool)
    assert sum(group.tools for group in api.groups) == len(api.tools)


@pytest.mark.slow
@pytest.mark.requirement("providers.no_silent_loss")
@pytest.mark.parametrize("file", [file for file in FILES if file.stat().st_size < 120_000], ids=lambda file: file.stem)
def test_no_sampled_leaf_of_a_real_document_is_lost_in_silence(file: Path) -> None:
    source = orjson.loads(file.read_bytes())
    leaves = max(1, file.stat().st_size // 30)
    assert silent_losses(source, every=max(1, leaves // MOST_LEAVES), start=1) == []
