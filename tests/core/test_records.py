"""Records built from stored rows, and IDs that are decoded or not found."""

from datetime import UTC, date, datetime

import msgspec
import pytest

from tapgate.core.records import build_record, require_id
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code


class _Row(msgspec.Struct):
    id: int = 7
    account_id: int | None = 8
    name: str = "Aminata"
    born_on: date = date(1990, 1, 31)
    created_at: datetime = datetime(2026, 1, 31, 12, tzinfo=UTC)
    secret: str = "s3cret"


class _Record(msgspec.Struct, kw_only=True):
    id: str
    account_id: str | None
    name: str
    born_on: str
    created_at: str
    masked: bool = False


def test_record_copies_fields_by_name_and_formats_times_and_ids() -> None:
    record = build_record(_Record, _Row(), id="row_7")
    assert record == _Record(
        id="row_7",
        account_id=ids.encode(ids.ACCOUNT, 8),
        name="Aminata",
        born_on="1990-01-31",
        created_at="2026-01-31T12:00:00.000Z",
    )


def test_record_from_a_mapping_keeps_null_and_prefers_given_fields() -> None:
    row = msgspec.structs.asdict(_Row(account_id=None))
    record = build_record(_Record, row, id="row_7", name="A.", masked=True)
    assert (record.account_id, record.name, record.masked) == (None, "A.", True)


def test_record_never_contains_an_internal_id() -> None:
    with pytest.raises(TypeError, match="internal ID"):
        build_record(_Record, _Row())


def test_malformed_id_raises_the_not_found_error_of_its_kind() -> None:
    assert require_id(ids.AGENT, ids.encode(ids.AGENT, 5)) == 5
    for text in ("", "agt_", ids.encode(ids.PARTNER, 5)):
        with pytest.raises(ApiError) as raised:
            require_id(ids.AGENT, text)
        assert raised.value.code is Code.AGENT_NOT_FOUND
