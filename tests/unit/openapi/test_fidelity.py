"""Nothing is lost in silence."""

from typing import Any

import pytest

from tests.unit.openapi.documents import answering, document, taking
from tests.unit.openapi.fidelity import silent_losses
from tests.unit.openapi.samples import SAMPLES
from toolcrib.kinds.http.openapi import import_openapi

pytestmark = pytest.mark.requirement("providers.no_silent_loss", "providers.losses")


@pytest.mark.parametrize("version", SAMPLES)
def test_each_keyword_of_a_document_is_in_the_tools_or_in_the_report(version: str) -> None:
    assert silent_losses(SAMPLES[version]) == []


@pytest.mark.parametrize("version", SAMPLES)
def test_a_report_tells_what_was_kept_of_every_operation(version: str) -> None:
    api = import_openapi(SAMPLES[version], name="api")
    assert [found.tool for found in api.report.operations] == [tool.name for tool in api.tools]
    assert all(found.kept and found.group for found in api.report.operations)
    assert api.provider.metadata["import"] == api.report.summary()
    assert api.report.summary()["left_out"] == 0
    assert sum(group.tools for group in api.groups) == len(api.tools)


def test_the_helper_finds_what_an_import_would_lose() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
    source = document({"/a": {"post": taking(schema, **answering({"type": "string"}))}})
    assert silent_losses(source) == []
    assert silent_losses({"openapi": "9", "paths": {"/a": {}}}) == ["/openapi", "/paths/~1a"]
