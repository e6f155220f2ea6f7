"""What happens next with a record in a flow: one sentence per state, below the title."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from tapgate.sites.console.components.stories import Record, name_party
from tapgate.sites.console.labels import humanize
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.times import describe_time, format_left
from tapgate.sites.console.translation.translator import source_text
from tapgate_client.schemas.approvals import ApprovalStatus
from tapgate_client.schemas.bank_accounts import BankAccountStatus
from tapgate_client.schemas.batches import BatchStatus
from tapgate_client.schemas.books import BookTransferProblem, BookTransferStatus
from tapgate_client.schemas.disputes import DisputeStatus
from tapgate_client.schemas.float_requests import FloatProvider, FloatRequestStatus
from tapgate_client.schemas.payouts import PayoutStatus
from tapgate_client.schemas.recalls import RecallStatus, RecallVerdict
from tapgate_client.schemas.subscribers import KycStatus
from tapgate_client.schemas.support import SupportRequestStatus


class Tone(StrEnum):
    WAITING = "waiting"
    ATTENTION = "attention"  # something went wrong, or is late
    ENDED = "ended"


class NextStep(NamedTuple):
    text: str
    tone: Tone = Tone.WAITING


class PayoutRunState(StrEnum):
    """State of a payout run, which follows from the payouts in it."""

    SUBMITTED = "submitted"
    ENDED = "ended"


class Variant(StrEnum):
    """State that a record's status alone does not tell."""

    OWN = "own request"
    LEFT_OUT = "left out of payout runs"
    EMPTY = "no lines"
    ALL_INVALID = "no valid line"
    OVERDUE = "overdue"
    NOTHING_HELD = "nothing held"
    DECIDED_RETURN = "decided: return"
    WITH_SUPER_AGENT = "with the super-agent"
    COMPLETE = "documents complete"
    INCOMPLETE = "documents missing"
    READY = "no documents required"
    CLOSED = "customer closed"
    UNDER_REVIEW = "under review here"
    UNDER_REVIEW_ELSEWHERE = "under review elsewhere"
    RETURN_REQUESTED = "return requested"


_WAITING: Final = Tone.WAITING
_ATTENTION: Final = Tone.ATTENTION
_ENDED: Final = Tone.ENDED

#: Sentence per state, by the record's status type.
NEXT_STEPS: Final[Mapping[type[StrEnum], Mapping[StrEnum, NextStep]]] = {
    ApprovalStatus: {
        ApprovalStatus.PENDING: NextStep(
            source_text("Waits for {approvals} by {roles}. Expires {expires_at}.")
        ),
        Variant.OWN: NextStep(
            source_text("Waits for {approvals} by {roles}, other than you. Expires {expires_at}.")
        ),
        ApprovalStatus.APPROVED: NextStep(
            source_text("Approved. The request is executed automatically.")
        ),
        ApprovalStatus.EXECUTED: NextStep(
            source_text("The request was executed. Nothing is left to do."), _ENDED
        ),
        ApprovalStatus.FAILED: NextStep(
            source_text("Approved, but not executed. If it is still needed, make a new request."),
            _ATTENTION,
        ),
        ApprovalStatus.REJECTED: NextStep(
            source_text("Rejected, so the request is never executed."), _ENDED
        ),
        ApprovalStatus.CANCELLED: NextStep(
            source_text("Canceled, so the request is never executed."), _ENDED
        ),
        ApprovalStatus.EXPIRED: NextStep(
            source_text(
                "Not approved in time, so the request is never executed. If it is still needed, "
                "make a new request."
            ),
            _ENDED,
        ),
    },
    PayoutStatus: {
        PayoutStatus.REQUESTED: NextStep(
            source_text(
                "Waits for the next payout run: finance starts it, and sends the bank file."
            )
        ),
        Variant.LEFT_OUT: NextStep(
            source_text(
                "The bank account is not verified, so payout runs leave this payout out. Cancel it "
                "to return the money."
            ),
            _ATTENTION,
        ),
        PayoutStatus.SUBMITTED: NextStep(
            source_text(
                "Waits for the bank. The payout becomes paid when it is on an imported bank "
                "statement, or when finance marks it as paid."
            )
        ),
        PayoutStatus.PAID: NextStep(
            source_text(
                "The bank has paid it. If the money comes back, mark the payout as returned."
            ),
            _ENDED,
        ),
        PayoutStatus.RETURNED: NextStep(
            source_text(
                "The bank sent the money back. The amount and the fee went back to {owner}."
            ),
            _ENDED,
        ),
        PayoutStatus.CANCELLED: NextStep(
            source_text("Canceled. The amount and the fee went back to {owner}."), _ENDED
        ),
    },
    PayoutRunState: {
        PayoutRunState.SUBMITTED: NextStep(
            source_text(
                "Upload the bank file to your bank. A payout becomes paid when it is on an "
                "imported bank statement, or when finance marks it as paid."
            )
        ),
        PayoutRunState.ENDED: NextStep(
            source_text("Every payout of this run is paid or returned."), _ENDED
        ),
    },
    BatchStatus: {
        Variant.EMPTY: NextStep(source_text("Upload the file with the lines below.")),
        BatchStatus.DRAFT: NextStep(
            source_text(
                "Waits for the check of its lines. Then they can no longer be changed, and the "
                "batch can be paid."
            )
        ),
        BatchStatus.VALIDATED: NextStep(
            source_text("Waits for its run, which pays the valid lines and leaves others out.")
        ),
        Variant.ALL_INVALID: NextStep(
            source_text(
                "No line is valid, so nothing can be paid. Correct the file, and upload it to a "
                "new batch."
            ),
            _ATTENTION,
        ),
        BatchStatus.RUNNING: NextStep(
            source_text("The valid lines are paid in the background. You can leave this page.")
        ),
        BatchStatus.COMPLETED: NextStep(source_text("Every line was paid."), _ENDED),
        BatchStatus.COMPLETED_WITH_ERRORS: NextStep(
            source_text(
                "Some lines were not paid. Download them as a CSV file, correct them, and upload "
                "them to a new batch."
            ),
            _ATTENTION,
        ),
        BatchStatus.CANCELLED: NextStep(
            source_text("Canceled. Lines that were paid stay paid, and no other line is."), _ENDED
        ),
    },
    KycStatus: {
        Variant.COMPLETE: NextStep(
            source_text(
                "Waits for a decision since {since}. No document is missing for level {level}."
            )
        ),
        Variant.INCOMPLETE: NextStep(
            source_text(
                "Waits for a decision since {since}. Missing for level {level}: {missing}."
            ),
            _ATTENTION,
        ),
        KycStatus.PENDING: NextStep(
            source_text("More documents were requested. Waits for the customer to send them.")
        ),
        KycStatus.NONE: NextStep(
            source_text("Waits for documents from the customer. Level {level} requires: {missing}.")
        ),
        Variant.READY: NextStep(
            source_text("No document is missing for level {level}, so it can be approved.")
        ),
        KycStatus.VERIFIED: NextStep(
            source_text(
                "Verified. The next document that the customer sends brings the customer back to "
                "the queue."
            ),
            _ENDED,
        ),
        KycStatus.REJECTED: NextStep(
            source_text("The documents were rejected. Waits for the customer to send new ones.")
        ),
        Variant.CLOSED: NextStep(
            source_text("The customer's account is closed, so nothing is left to decide."), _ENDED
        ),
    },
    DisputeStatus: {
        DisputeStatus.OPEN: NextStep(
            source_text("{merchant} can answer until {due_at}. Compliance can decide before.")
        ),
        Variant.OVERDUE: NextStep(
            source_text("{merchant} has not answered in time. Decide, or ask the merchant again."),
            _ATTENTION,
        ),
        DisputeStatus.ANSWERED: NextStep(
            source_text("{merchant} has answered. Waits for a decision by compliance.")
        ),
        DisputeStatus.REFUNDED: NextStep(
            source_text("Decided in the customer's favor. The money is back in the wallet."), _ENDED
        ),
        DisputeStatus.REJECTED: NextStep(
            source_text("Rejected. The payment stays as it is, and can't be disputed again."),
            _ENDED,
        ),
        DisputeStatus.WITHDRAWN: NextStep(
            source_text("Withdrawn. The payment stays as it is, and can't be disputed again."),
            _ENDED,
        ),
    },
    RecallStatus: {
        RecallStatus.OPEN: NextStep(
            source_text(
                "{recipient} can return or keep the money until {expires_at}. Without an answer, "
                "{recipient} keeps it."
            )
        ),
        Variant.NOTHING_HELD: NextStep(
            source_text(
                "{recipient} had no money available, so nothing is on hold. Expires {expires_at}."
            )
        ),
        RecallStatus.RETURNED: NextStep(
            source_text("{recipient} has returned the held amount to {sender}."), _ENDED
        ),
        RecallStatus.KEPT: NextStep(
            source_text("{recipient} keeps the money. It is no longer on hold."), _ENDED
        ),
        RecallStatus.EXPIRED: NextStep(
            source_text("Nobody answered in time, so {recipient} keeps the money."), _ENDED
        ),
        RecallStatus.DECIDED: NextStep(
            source_text("Staff released the money, so {recipient} keeps it."), _ENDED
        ),
        Variant.DECIDED_RETURN: NextStep(
            source_text("Staff returned the held amount to {sender}."), _ENDED
        ),
    },
    FloatRequestStatus: {
        FloatRequestStatus.OPEN: NextStep(
            source_text(
                "Waits for finance: fund it after the agent's money has arrived, or decline it."
            )
        ),
        Variant.WITH_SUPER_AGENT: NextStep(
            source_text(
                "The super-agent is asked first, until {finance_at}. Finance can fund the request "
                "before."
            )
        ),
        FloatRequestStatus.FUNDED: NextStep(
            source_text("{agent} has the requested amount in the float."), _ENDED
        ),
        FloatRequestStatus.DECLINED: NextStep(
            source_text("Declined. No money moved, and {agent} can ask again."), _ENDED
        ),
        FloatRequestStatus.CANCELLED: NextStep(source_text("Canceled. No money moved."), _ENDED),
    },
    BookTransferStatus: {
        BookTransferStatus.PENDING: NextStep(
            source_text("Repeated automatically until the book {book} has credited or refused it.")
        ),
        Variant.UNDER_REVIEW: NextStep(
            source_text("After the review of this payment, it goes to the book {book}.")
        ),
        Variant.UNDER_REVIEW_ELSEWHERE: NextStep(
            source_text("The book {book} reviews it. The result arrives automatically.")
        ),
        Variant.RETURN_REQUESTED: NextStep(
            source_text(
                "The book {book} is asked to refuse it. Then the money goes back to the sender."
            )
        ),
        BookTransferStatus.STOPPED: NextStep(
            source_text(
                "The book {book} has not accepted it for a day. Waits for a decision by finance: "
                "retry or return it."
            ),
            _ATTENTION,
        ),
        BookTransferStatus.DELIVERED: NextStep(
            source_text("The book {book} has credited the recipient."), _ENDED
        ),
        BookTransferStatus.RETURNED: NextStep(
            source_text("The amount and the fee are back with the sender."), _ENDED
        ),
        BookTransferStatus.CANCELED: NextStep(
            source_text("A review rejected it, so the book {book} gets nothing."), _ENDED
        ),
    },
}

#: What the users of a merchant, partner or agent read instead. Other sentences suit both.
OWNER_STEPS: Final[Mapping[type[StrEnum], Mapping[StrEnum, NextStep]]] = {
    ApprovalStatus: {
        Variant.OWN: NextStep(
            source_text(
                "Waits for approval by the platform until {expires_at}. If approved, the request "
                "is executed automatically. To cancel it, ask support."
            )
        ),
    },
    PayoutStatus: {
        PayoutStatus.REQUESTED: NextStep(
            source_text(
                "The next payout run sends it to your bank. To cancel it before that, ask support."
            )
        ),
        Variant.LEFT_OUT: NextStep(
            source_text(
                "The bank account is not verified, so the payout is not sent to the bank. Ask "
                "support to verify the account, or to cancel the payout."
            ),
            _ATTENTION,
        ),
        PayoutStatus.SUBMITTED: NextStep(
            source_text("Sent to the bank. The payout becomes paid when the bank confirms it.")
        ),
        PayoutStatus.PAID: NextStep(
            source_text("Paid. Your bank statement shows it with the reference {reference}."),
            _ENDED,
        ),
        PayoutStatus.RETURNED: NextStep(
            source_text(
                "The bank sent the money back. The amount and the fee are in your balance again. "
                "Check the bank account, then request a new payout."
            ),
            _ATTENTION,
        ),
        PayoutStatus.CANCELLED: NextStep(
            source_text("Canceled. The amount and the fee are in your balance again."), _ENDED
        ),
    },
    DisputeStatus: {
        DisputeStatus.OPEN: NextStep(
            source_text(
                "Answer within {left}, by {due_at}. Without an answer, the platform decides from "
                "what the customer says."
            ),
            _ATTENTION,
        ),
        Variant.OVERDUE: NextStep(
            source_text(
                "The answer is overdue. Answer now, before the platform decides from what the "
                "customer says."
            ),
            _ATTENTION,
        ),
        DisputeStatus.ANSWERED: NextStep(
            source_text("You have answered. Waits for a decision by the platform.")
        ),
        DisputeStatus.REFUNDED: NextStep(
            source_text(
                "The disputed amount went back to the customer from your balance. Nothing is left "
                "to do."
            ),
            _ENDED,
        ),
        DisputeStatus.REJECTED: NextStep(
            source_text(
                "Decided in your favor. You keep the money, and the payment can't be disputed "
                "again."
            ),
            _ENDED,
        ),
        DisputeStatus.WITHDRAWN: NextStep(
            source_text("Withdrawn. You keep the money, and the payment can't be disputed again."),
            _ENDED,
        ),
    },
    SupportRequestStatus: {
        SupportRequestStatus.OPEN: NextStep(
            source_text("Waits for support. You read the answer on this page.")
        ),
        SupportRequestStatus.ANSWERED: NextStep(
            source_text("Support has answered. If the question is still open, reply below."),
            _ATTENTION,
        ),
        SupportRequestStatus.CLOSED: NextStep(
            source_text("Closed. Ask support again if the question is still open."), _ENDED
        ),
    },
}


def tell_approval(request: PageRequest, approval: Record) -> NextStep:
    translator, viewer = request.translator, request.principal.id
    state: StrEnum = ApprovalStatus(approval["status"])
    is_decided_by_viewer = viewer == approval["maker"] or viewer in approval["approvers"]
    if state == ApprovalStatus.PENDING and is_decided_by_viewer:
        state = Variant.OWN
    missing = max(approval["required_approvers"] - len(approval["approvers"]), 1)
    roles = [translator.translate_label(humanize(role)) for role in approval["roles"]]
    return _tell(
        request,
        ApprovalStatus,
        state,
        approvals=translator.translate_plural(missing, "{count} approval", "{count} approvals"),
        roles=f" {translator.translate('or')} ".join(roles),
        expires_at=_describe(request, approval["expires_at"]),
    )


def tell_payout(request: PageRequest, payout: Record, account: Record) -> NextStep:
    state: StrEnum = PayoutStatus(payout["status"])
    if state == PayoutStatus.REQUESTED and account["status"] != BankAccountStatus.VERIFIED:
        state = Variant.LEFT_OUT
    return _tell(
        request, PayoutStatus, state, owner=payout["owner_name"], reference=payout["reference"]
    )


def tell_payout_run(request: PageRequest, *, has_submitted: bool) -> NextStep:
    state = PayoutRunState.SUBMITTED if has_submitted else PayoutRunState.ENDED
    return _tell(request, PayoutRunState, state)


def tell_batch(request: PageRequest, batch: Record) -> NextStep:
    state: StrEnum = BatchStatus(batch["status"])
    if state == BatchStatus.DRAFT and not batch["lines"]:
        state = Variant.EMPTY
    elif state == BatchStatus.VALIDATED and not batch["valid"]:
        state = Variant.ALL_INVALID
    return _tell(request, BatchStatus, state)


def tell_kyc_review(
    request: PageRequest, customer: Record, level: int, missing: Sequence[str]
) -> NextStep:
    """Return the next step of a review for a level that still requires `missing`."""
    state: StrEnum = KycStatus(customer["kyc_status"])
    if customer["status"] == "CLOSED":
        state = Variant.CLOSED
    elif customer["kyc_pending_since"] is not None:
        state = Variant.INCOMPLETE if missing else Variant.COMPLETE
    elif state == KycStatus.NONE and not missing:
        state = Variant.READY
    translate_label = request.translator.translate_label
    return _tell(
        request,
        KycStatus,
        state,
        since=_describe(request, customer["kyc_pending_since"]),
        level=level,
        missing=", ".join(translate_label(humanize(name)) for name in missing),
    )


def tell_dispute(request: PageRequest, dispute: Record) -> NextStep:
    state = Variant.OVERDUE if dispute["overdue"] else DisputeStatus(dispute["status"])
    return _tell(
        request,
        DisputeStatus,
        state,
        merchant=dispute["processor_name"],
        due_at=_describe(request, dispute["due_at"]),
        left=format_left(dispute["due_at"], request.now, request.translator),
    )


def tell_support_request(request: PageRequest, item: Record) -> NextStep:
    """Return the next step of a question that an owner's user asked."""
    return _tell(request, SupportRequestStatus, SupportRequestStatus(item["status"]))


def tell_recall(request: PageRequest, recall: Record, transfer: Record) -> NextStep:
    state: StrEnum = RecallStatus(recall["status"])
    if state == RecallStatus.OPEN and not float(recall["held_amount"]):
        state = Variant.NOTHING_HELD
    elif recall["decision"] == RecallVerdict.RETURN:
        state = Variant.DECIDED_RETURN
    return _tell(
        request,
        RecallStatus,
        state,
        sender=name_party(request.translator, transfer["from"]),
        recipient=name_party(request.translator, transfer["to"]),
        expires_at=_describe(request, recall["expires_at"]),
    )


def tell_float_request(request: PageRequest, item: Record) -> NextStep:
    is_with_super_agent = item["waits_for"] == FloatProvider.SUPER_AGENT
    state = Variant.WITH_SUPER_AGENT if is_with_super_agent else FloatRequestStatus(item["status"])
    finance_at = _describe(request, item["finance_at"])
    return _tell(
        request, FloatRequestStatus, state, agent=item["agent_name"], finance_at=finance_at
    )


def tell_book_transfer(request: PageRequest, transfer: Record) -> NextStep:
    state: StrEnum = BookTransferStatus(transfer["status"])
    if state == BookTransferStatus.PENDING:
        if transfer["error"] == BookTransferProblem.UNDER_REVIEW:
            state = Variant.UNDER_REVIEW
        elif transfer["return_requested_at"] is not None:
            state = Variant.RETURN_REQUESTED
        elif transfer["error"] == BookTransferProblem.UNDER_REVIEW_ELSEWHERE:
            state = Variant.UNDER_REVIEW_ELSEWHERE
    return _tell(request, BookTransferStatus, state, book=transfer["book"])


def _tell(
    request: PageRequest, status_type: type[StrEnum], state: StrEnum, **values: Any
) -> NextStep:
    own = {} if request.principal.owner is None else OWNER_STEPS.get(status_type, {})
    step = own.get(state) or NEXT_STEPS[status_type][state]
    text = request.translator.translate(step.text, **values)
    return step._replace(text=text[:1].upper() + text[1:])


def _describe(request: PageRequest, moment: str | None) -> str:
    """Return the text of a time; an empty one if there is none."""
    if moment is None:
        return ""
    time = datetime.fromisoformat(moment)
    text = describe_time(time, request.now, request.zone, request.translator)
    is_word = text.startswith((request.translate("Today"), request.translate("Yesterday")))
    return text[:1].lower() + text[1:] if is_word else text
