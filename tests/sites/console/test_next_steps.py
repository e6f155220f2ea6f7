"""What happens next with a record: a true sentence for each state, in both languages."""

from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from itertools import product
from types import SimpleNamespace
from typing import Any, Final
from zoneinfo import ZoneInfo

import pytest

from tapgate.sites.console.components import next_steps
from tapgate.sites.console.components.next_steps import NEXT_STEPS, OWNER_STEPS, NextStep, Variant
from tapgate.sites.console.translation.translator import Language, get_translator
from tapgate_client.schemas.approvals import ApprovalStatus
from tapgate_client.schemas.batches import BatchStatus
from tapgate_client.schemas.books import BookTransferStatus
from tapgate_client.schemas.disputes import DisputeStatus
from tapgate_client.schemas.float_requests import FloatRequestStatus
from tapgate_client.schemas.payouts import PayoutStatus
from tapgate_client.schemas.recalls import RecallStatus
from tapgate_client.schemas.subscribers import KycStatus
from tapgate_client.schemas.support import SupportRequestStatus

_TIME: Final = "2026-11-19T10:00:00Z"
_SUBSCRIBER: Final = {"type": "subscriber", "id": "sub_1", "name": "Yabom Kamara"}

Record = dict[str, Any]


def _build_request(language: Language, owner: str | None = None) -> Any:
    translator = get_translator(language)
    return SimpleNamespace(
        translator=translator,
        translate=translator.translate,
        principal=SimpleNamespace(id="adm_viewer", owner=owner),
        now=datetime(2026, 11, 19, 12, tzinfo=UTC),
        zone=ZoneInfo("Africa/Freetown"),
    )


def _vary(base: Record, **options: tuple[Any, ...]) -> list[Record]:
    """Return a record for each combination of the options."""
    return [base | dict(zip(options, values, strict=True)) for values in product(*options.values())]


def _tell_all(tell: Callable[..., NextStep], records: list[Record], *arguments: Any) -> Any:
    return [lambda request, record=record: tell(request, record, *arguments) for record in records]


_APPROVAL: Final = {
    "required_approvers": 2,
    "roles": ["system_admin", "finance_user"],
    "expires_at": _TIME,
}


def _build_sentences() -> dict[type[StrEnum], list[Callable[[Any], NextStep]]]:
    """Return, by status type, functions that tell the next step of many different records."""
    approvals = _vary(
        _APPROVAL,
        status=tuple(ApprovalStatus),
        maker=("adm_viewer", "adm_1"),
        approvers=([], ["adm_viewer"]),
    )
    payouts = _vary({"owner_name": "Shop", "reference": "PO1"}, status=tuple(PayoutStatus))
    customers = _vary(
        {},
        kyc_status=tuple(KycStatus),
        status=("ACTIVE", "CLOSED"),
        kyc_pending_since=(None, _TIME),
    )
    transfer = {"from": _SUBSCRIBER, "to": _SUBSCRIBER | {"name": None}}
    return {
        ApprovalStatus: _tell_all(next_steps.tell_approval, approvals),
        PayoutStatus: [
            *_tell_all(next_steps.tell_payout, payouts, {"status": "verified"}),
            *_tell_all(next_steps.tell_payout, payouts, {"status": "blocked"}),
        ],
        next_steps.PayoutRunState: [
            lambda request: next_steps.tell_payout_run(request, has_submitted=True),
            lambda request: next_steps.tell_payout_run(request, has_submitted=False),
        ],
        BatchStatus: _tell_all(
            next_steps.tell_batch,
            _vary({}, status=tuple(BatchStatus), lines=(0, 2), valid=(0, 2)),
        ),
        KycStatus: [
            *_tell_all(next_steps.tell_kyc_review, customers, 2, ["id_front", "selfie"]),
            *_tell_all(next_steps.tell_kyc_review, customers, 2, []),
        ],
        DisputeStatus: _tell_all(
            next_steps.tell_dispute,
            _vary(
                {"processor_name": "Shop", "due_at": _TIME},
                status=tuple(DisputeStatus),
                overdue=(False, True),
            ),
        ),
        RecallStatus: _tell_all(
            next_steps.tell_recall,
            _vary(
                {"expires_at": _TIME},
                status=tuple(RecallStatus),
                held_amount=("0.00", "5.00"),
                decision=(None, "release", "return"),
            ),
            transfer,
        ),
        FloatRequestStatus: _tell_all(
            next_steps.tell_float_request,
            _vary(
                {"agent_name": "Corner shop", "finance_at": _TIME},
                status=tuple(FloatRequestStatus),
                waits_for=(None, "super_agent", "finance"),
            ),
        ),
        BookTransferStatus: _tell_all(
            next_steps.tell_book_transfer,
            _vary(
                {"book": "north"},
                status=tuple(BookTransferStatus),
                error=(None, "UNDER_REVIEW", "UNDER_REVIEW_ELSEWHERE"),
                return_requested_at=(None, _TIME),
            ),
        ),
    }


_SENTENCES: Final = _build_sentences()


def test_every_state_of_a_record_in_a_flow_has_a_sentence() -> None:
    assert NEXT_STEPS.keys() == _SENTENCES.keys()
    for status_type, steps in NEXT_STEPS.items():
        assert set(status_type) <= set(steps), status_type
    declared = {state for steps in NEXT_STEPS.values() for state in steps}
    assert set(Variant) - declared == set()
    texts = [step.text for steps in NEXT_STEPS.values() for step in steps.values()]
    assert [text for text in texts if not text.endswith(".")] == []


@pytest.mark.parametrize("language", Language)
def test_every_sentence_is_told_without_a_gap(language: Language) -> None:
    request, translator = _build_request(language), get_translator(language)
    for status_type, tell in _SENTENCES.items():
        told = {one(request) for one in tell}
        for step in told:
            assert not set("{}") & set(step.text) and ": ." not in step.text, step.text
            assert "  " not in step.text and "None" not in step.text, step.text
        starts = {translator.translate(step.text) for step in NEXT_STEPS[status_type].values()}
        found = {start for start in starts if any(_is_filled(start, step.text) for step in told)}
        assert sorted(starts - found) == []


def _is_filled(template: str, text: str) -> bool:
    """Return whether a text has the template's words in front of and after its values."""
    start, end = template.partition("{")[0], template.rpartition("}")[2]
    return text.lower().startswith(start.lower()) and text.endswith(end)


#: Owner users get only approvals that they requested.
_OWNER_SENTENCES: Final = _SENTENCES | {
    ApprovalStatus: _tell_all(
        next_steps.tell_approval,
        _vary(_APPROVAL | {"maker": "adm_viewer", "approvers": []}, status=tuple(ApprovalStatus)),
    ),
    SupportRequestStatus: _tell_all(
        next_steps.tell_support_request, _vary({}, status=tuple(SupportRequestStatus))
    ),
}


@pytest.mark.parametrize("language", Language)
def test_owners_read_a_sentence_of_their_own_or_the_common_one(language: Language) -> None:
    request, translator = _build_request(language, owner="prc_1"), get_translator(language)
    for status_type, own in OWNER_STEPS.items():
        common, tell = NEXT_STEPS.get(status_type, {}), _OWNER_SENTENCES[status_type]
        assert set(status_type) <= {*common, *own}, status_type
        told = {one(request).text for one in tell}
        assert [text for text in told if set("{}") & set(text) or "None" in text] == []
        expected = {translator.translate(step.text) for step in own.values()}
        found = {start for start in expected if any(_is_filled(start, text) for text in told)}
        assert sorted(expected - found) == []


@pytest.mark.parametrize(
    ("maker", "approvers", "expected"),
    [
        ("adm_1", [], "Waits for 2 approvals by System admin or Finance. Expires today 10:00."),
        (
            "adm_viewer",
            ["adm_1"],
            "Waits for 1 approval by System admin or Finance, other than you. Expires today 10:00.",
        ),
    ],
)
def test_approval_says_who_must_still_approve(
    maker: str, approvers: list[str], expected: str
) -> None:
    approval = _APPROVAL | {"status": "pending", "maker": maker, "approvers": approvers}
    assert next_steps.tell_approval(_build_request(Language.EN), approval).text == expected
