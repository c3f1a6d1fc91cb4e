"""Messages of gRPC: what meets the schema can be sent, and comes back as it went."""

import base64
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.grpc.protos import crm, pool
from toolcrib.contracts import Json
from toolcrib.core.registry import compile_schema
from toolcrib.kinds.grpc.importer import import_grpc
from toolcrib.kinds.grpc.runtime.calls import Codec, UnreadableMessage

pytestmark = pytest.mark.requirement("grpc.properties")

DEAL = "crm.v1.Deal"
CODEC = Codec(pool(), DEAL, DEAL)
PUT = next(
    tool for tool in import_grpc([crm()], name="crm", base_url="grpc://x:1").tools if tool.name.endswith("PutDeal")
)

texts = st.text(st.characters(codec="utf-8"), max_size=20)
numbers = st.floats(allow_nan=False, width=64).map(lambda number: number if abs(number) < float("inf") else "Infinity")
anything = st.recursive(
    st.none() | st.booleans() | texts | st.integers(-(2**31), 2**31),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
teams = st.fixed_dictionaries({"name": texts})


def written(moment: datetime) -> str:
    """As ProtoJSON writes a moment of whole seconds."""
    return moment.replace(microsecond=0).isoformat() + "Z"


FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "id": texts,
    "display_name": texts,
    "amount_cents": st.integers(-(2**63), 2**63 - 1).map(str),
    "stage": st.sampled_from(["STAGE_UNSPECIFIED", "STAGE_OPEN", "STAGE_WON"]),
    "closes_at": st.datetimes().map(written),
    "reminder": st.integers(-(10**9), 10**9).map(lambda seconds: f"{seconds}s"),
    "tags": st.lists(texts, max_size=3),
    "scores": st.dictionaries(texts, st.integers(-(2**31), 2**31 - 1), max_size=3),
    "note": texts,
    "document": st.binary(max_size=20).map(lambda data: base64.b64encode(data).decode()),
    "probability": numbers,
    "extra": st.dictionaries(texts, anything, max_size=3),
    "anything": anything,
    "nickname": texts,
    "visits": st.integers(0, 2**64 - 1).map(str),
    "teams": st.dictionaries(st.integers(-(2**31), 2**31 - 1).map(str), teams, max_size=3),
    "attachment": teams.map(lambda team: {"@type": "type.googleapis.com/crm.v1.Team", **team}),
}
OWNERS: list[dict[str, Any]] = [{}, {"user": "u1"}, {"team": {"name": "EMEA"}}]


@st.composite
def deals(draw: st.DrawFn) -> dict[str, Any]:
    """Some fields of a deal."""
    return {**draw(st.fixed_dictionaries({}, optional=FIELDS)), **draw(st.sampled_from(OWNERS))}


@given(deals(), st.none() | deals())
def test_a_message_comes_back_as_it_went(deal: dict[str, Json], parent: dict[str, Json] | None) -> None:
    asked = deal if parent is None else {**deal, "parent": parent}
    assert compile_schema(PUT.input_schema).problems(asked) == ()
    answer = CODEC.read(CODEC.write(asked))
    assert compile_schema(PUT.output_schema or {}).problems(answer) == ()
    again = dict(answer)
    if parent is not None:
        assert again.pop("parent").items() >= parent.items()
    assert {name: again[name] for name in deal} == deal


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_one_that_cannot_be_read(data: bytes) -> None:
    try:
        answer = CODEC.read(data)
    except UnreadableMessage:
        return
    assert isinstance(answer, dict)
