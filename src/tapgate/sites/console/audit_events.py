"""Audit log events that its filter lists."""

from collections.abc import Mapping
from typing import Final

_PIN_ACTIONS: Final = "pin_changed pin_reset pin_reset_requested pin_verified"

#: Actions by type of resource. Together they are an event code, such as `card.blocked`.
_ACTIONS: Final[Mapping[str, str]] = {
    "access": "denied",
    "account_rule": "updated",
    "admin": "confirmed created disabled enabled factor_enrolled factor_removed factor_verified"
    " factors_reset login logout password_changed password_reset password_set password_verified"
    " preferences_changed recovery_codes_replaced session_ended sso_linked totp_started updated",
    "agent": f"activated created suspended terminated updated {_PIN_ACTIONS}",
    "alert": "assigned created investigated repeated resolved unassigned",
    "api_key": "created deleted rotated updated",
    "approval": "approved cancelled created executed expired rejected result_disclosed",
    "approval_rules": "resumed suspended updated",
    "bank_account": "blocked created csv_mapping_updated verified",
    "bank_statement": "imported",
    "bank_statement_line": "ignored matched posted reopened",
    "batch": "cancelled completed created started uploaded validated",
    "branding": "updated",
    "card": "blocked linked personalization_started personalized replaced replacement_requested"
    " unblocked updated uploaded"
    f" {_PIN_ACTIONS}",
    "cash_out_request": "confirmed created declined",
    "commission_rules": "replaced",
    "compliance_rule": "created deleted updated",
    "dispute": "accepted answered created refunded rejected withdrawn",
    "fee_rules": "replaced",
    "float_request": "cancelled created declined funded passed_on",
    "gl_codes": "updated",
    "installation": "recovered restored secret_key_hashes_discarded secret_key_replaced",
    "keyset": "created retired",
    "ledger": "archive_dropped archive_restored archived verified",
    "ledger_day": "closed",
    "ledger_key": "created retired",
    "partner": "activated created suspended updated webhook_secret_rotated",
    "payout": "cancelled paid requested returned",
    "payout_run": "created downloaded",
    "payout_schedule": "updated",
    "processor": "activated created suspended",
    "recall": "decided expired kept opened returned",
    "saved_reply": "created deleted updated",
    "signing_key": "created deleted",
    "subscriber": "blocked closed created kyc_approved kyc_assigned kyc_document_added"
    " kyc_document_seen kyc_more_needed kyc_override kyc_rejected kyc_unassigned"
    " restricted_access_granted restricted_access_requested statement_issued unblocked updated"
    f" {_PIN_ACTIONS}",
    "support": "assigned closed message_received replied requested unassigned",
    "terminal": "blocked created unblocked",
    "transaction": "completed delivery_retried failed receipt_resent refunded return_requested"
    " returned_unconfirmed reversed",
    "webhook_delivery": "redelivered",
    "webhook_endpoint": "created deleted disabled redelivered secret_rotated tested updated",
}
AUDIT_EVENTS: Final = tuple(
    f"{resource}.{action}" for resource, actions in _ACTIONS.items() for action in actions.split()
)
