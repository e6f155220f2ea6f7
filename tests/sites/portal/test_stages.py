"""Stages of a record: every status has a way that starts, and that is finished or goes on."""

from collections.abc import Callable
from enum import StrEnum
from itertools import groupby
from typing import Any, Final

import pytest

from tapgate.sites.portal.stages import (
    Progress,
    Stage,
    list_approval_stages,
    list_dispute_stages,
    list_payout_stages,
)
from tapgate_client.schemas.approvals import ApprovalStatus
from tapgate_client.schemas.disputes import DisputeStatus
from tapgate_client.schemas.payouts import PayoutStatus

_TIME: Final = "2026-11-19T10:00:00Z"
_RECORD: Final = {
    "created_at": _TIME,
    "updated_at": _TIME,
    "expires_at": _TIME,
    "maker_name": "Musa Bangura",
    "due_at": _TIME,
    "merchant_response": "Delivered",
    "return_reason": "Account closed",
}
_STAGES: Final[list[tuple[type[StrEnum], Callable[..., list[Stage]]]]] = [
    (ApprovalStatus, list_approval_stages),
    (PayoutStatus, list_payout_stages),
    (DisputeStatus, list_dispute_stages),
]
#: Kinds of stages in their order, without repetitions.
_WAYS: Final = (
    [Progress.DONE],
    [Progress.DONE, Progress.CURRENT],
    [Progress.DONE, Progress.CURRENT, Progress.AHEAD],
    [Progress.DONE, Progress.FAILED],
)


@pytest.mark.parametrize(("status_type", "list_stages"), _STAGES)
def test_every_status_has_a_way_with_at_most_one_current_stage(
    status_type: type[StrEnum], list_stages: Callable[[Any], list[Stage]]
) -> None:
    ways = {status: list_stages(_RECORD | {"status": status}) for status in status_type}
    for status, stages in ways.items():
        kinds = [stage.progress for stage in stages]
        assert [kind for kind, _ in groupby(kinds)] in _WAYS, status
        assert kinds.count(Progress.CURRENT) + kinds.count(Progress.FAILED) <= 1
        assert stages[0].at == _TIME
    assert len({tuple(stages) for stages in ways.values()}) == len(ways), "looks like another"


def test_returned_payout_says_why() -> None:
    *_, last = list_payout_stages(_RECORD | {"status": PayoutStatus.RETURNED})
    assert last.note == "Account closed"
