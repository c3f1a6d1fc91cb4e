"""The benchmark of imports."""

import orjson
import pytest

from benchmarks.openapi_import import measure, parsed, table
from tests.unit.openapi.samples import SAMPLES

pytestmark = pytest.mark.requirement("benchmarks.openapi")


def test_a_document_is_measured_and_shown_in_a_table() -> None:
    figures = measure("sample", orjson.dumps(SAMPLES["3.0"]), rounds=2)
    assert (figures.tools, figures.document) == (4, "sample")
    assert figures.least_s <= figures.median_s
    assert figures.schemas_bytes > 1_000
    lines = table([figures]).splitlines()
    assert len(lines) == 3
    assert {line.count("|") for line in lines} == {9}
    assert parsed(b"a: 1") is None
