"""Gateway table retention: what is deleted when, and what is kept and why.

A test requires every table to be here. `docs/retention.md` is generated from both lists.
"""

from datetime import timedelta
from typing import Final

from tapgate.auth.login_failures import FAILURE_WINDOW
from tapgate.business.approvals.model import SUM_PERIOD
from tapgate.business.payments.books.incoming import BOOK_SCOPE_PREFIX
from tapgate.core.id_generator import first_id_at
from tapgate.ledger.one_time_codes.send_limit import MAX_WINDOW
from tapgate.ledger.pins.wrong_pin_limit import WINDOW_SECONDS, to_minute
from tapgate.runtime.retention import Days, Retention
from tapgate_client import ids
from tapgate_client.schemas.compliance import MAX_WINDOW_SECONDS

#: Retention period of ended deliveries, messages and chat turns.
HISTORY_PERIOD: Final = timedelta(days=30)
_KEY_DAYS: Final = Days("idempotency_key_days", zero_is_forever=True)

RETENTION: Final = (
    Retention(
        "deliveries",
        "ended webhook deliveries",
        "ended_at",
        HISTORY_PERIOD,
        condition="status <> 'pending'",
    ),
    Retention(
        "deliveries",
        "webhook deliveries that stay due, because their endpoint is paused, disabled or too slow",
        "next_attempt_at",
        HISTORY_PERIOD,
        condition="status = 'pending'",
        select="""
            SELECT waiting.ctid FROM webhook_endpoints endpoint, LATERAL (
                SELECT ctid FROM deliveries
                WHERE endpoint_id = endpoint.id AND status = 'pending' AND next_attempt_at < $1
                ORDER BY next_attempt_at LIMIT {limit} FOR UPDATE SKIP LOCKED) AS waiting
            LIMIT {limit}""",
    ),
    # An event is deleted after its last delivery, which ended later.
    Retention(
        "events",
        "events without deliveries",
        "id",
        HISTORY_PERIOD,
        condition="NOT EXISTS (SELECT FROM deliveries WHERE event_id = events.id)",
        to_cutoff=first_id_at,
    ),
    Retention(
        "webhook_endpoints",
        "deleted webhook endpoints without deliveries",
        "deleted_at",
        HISTORY_PERIOD,
        condition="NOT EXISTS (SELECT FROM deliveries WHERE endpoint_id = webhook_endpoints.id)",
    ),
    Retention(
        "webhook_endpoints",
        "previous secrets of webhook endpoints",
        "previous_secret_expires_at",
        timedelta(0),
        erase=("previous_secret", "previous_secret_expires_at"),
    ),
    Retention(
        "messages",
        "delivered and expired messages to phones",
        "expires_at",
        HISTORY_PERIOD,
        condition="status <> 'pending'",
    ),
    Retention("chat_turns", "chat turns", "id", HISTORY_PERIOD, to_cutoff=first_id_at),
    # Each row has a file, so a batch with 1,000 rows would be large.
    Retention("statements", "statement files", "expires_at", timedelta(0), batch_size=200),
    Retention(
        "support_requests",
        "support requests that do not wait for support, with their messages",
        "updated_at",
        timedelta(days=90),
        condition="status <> 'open'",
    ),
    Retention(
        "request_logs",
        "requests in the request log",
        "id",
        Days("request_log_days", zero_is_forever=False),
        batch_size=5_000,
        to_cutoff=first_id_at,
    ),
    Retention("card_taps", "taps with a card proof", "at", timedelta(days=400)),
    # More than twice the lookback, so that `tapgate verify` finds all matches for movements that
    # were matched in the last week.
    Retention("cash_matches", "cash-ins matched with cash-outs", "matched_at", timedelta(days=30)),
    Retention(
        "pin_failures",
        "wrong PINs, for compliance rules",
        "failed_at",
        timedelta(seconds=MAX_WINDOW_SECONDS),
    ),
    Retention(
        "pin_attempts",
        "PIN attempts, for the wrong-PIN limit",
        "minute",
        timedelta(seconds=WINDOW_SECONDS),
        to_cutoff=to_minute,
    ),
    Retention(
        "guarded_calls", "amounts that count toward approval rules", "created_at", SUM_PERIOD
    ),
    Retention(
        "login_failures",
        "failed logins",
        "coalesce(failed_at[cardinality(failed_at)], '-infinity')",
        FAILURE_WINDOW,
    ),
    Retention(
        "one_time_code_sends",
        "times of sent one-time codes",
        "sent_at[cardinality(sent_at)]",
        MAX_WINDOW,
    ),
    # Kept after their expiry for nodes whose clocks differ.
    Retention(
        "used_passkey_challenges", "used passkey challenges", "expires_at", timedelta(hours=1)
    ),
    Retention("oidc_logins", "used single sign-on states", "expires_at", timedelta(0)),
    # The keys have no second index. A request with a deleted key is a new request. A transfer from
    # another book may be repeated after months, for example after a long review there.
    Retention(
        "idempotency_keys",
        "idempotency keys, except for transfers from other books",
        "transaction_id",
        _KEY_DAYS,
        condition=f"scope NOT LIKE '{BOOK_SCOPE_PREFIX}%'",
        to_cutoff=first_id_at,
        is_scanned=True,
    ),
    # They tell whether an archived transfer from another book was credited.
    Retention(
        "partner_references",
        "partner references, except for transaction IDs from other books",
        "transaction_id",
        _KEY_DAYS,
        condition=f"reference NOT LIKE '{ids.TRANSACTION}%'",
        to_cutoff=first_id_at,
        is_scanned=True,
    ),
)

#: Reason -> tables whose rows no job deletes.
KEPT: Final = {
    "Kept forever, because they are financial or legal records; `tapgate archive` moves whole"
    " months of transactions and entries to files": (
        "accounts", "agents", "alerts", "approval_decisions", "approvals", "audit_entries",
        "bank_accounts", "bank_line_requests", "bank_statement_lines", "bank_statements",
        "batch_lines", "batches", "book_transfers", "cards", "cash_out_requests",
        "closed_day_chunks", "closed_days", "disputes", "entries", "float_requests",
        "kyc_documents", "ledger_keys", "partners",
        "payout_runs", "payouts", "phone_changes", "processors", "recalls",
        "released_transactions", "replays",
        "subscribers", "terminals", "transactions",
    ),
    "Kept forever, because they show who had access": (
        "admin_former_identities", "admin_identities", "admin_link_views", "admins", "api_keys",
        "hmac_keys",
    ),
    "Kept forever, because there are few per day": (
        "figures", "proofs", "task_runs", "webhook_redeliveries",
    ),
    "One row per month or account": (
        "archived_months", "archived_sums", "verified_ranges", "verified_sums",
    ),
    "At most a few rows per person, card or key, replaced or deleted when used": (
        "admin_invitations", "admin_passkeys", "admin_recovery_codes", "admin_totp",
        "card_own_keys", "kyc_assignments", "one_time_codes", "pins", "refresh_tokens",
        "restricted_access", "sessions",
    ),
    "Edited by staff": (
        "account_rules", "approval_rules", "branding", "card_keysets", "commission_rates",
        "commission_rules", "compliance_rules", "csv_mappings", "fee_rules", "gl_codes",
        "payout_schedules", "proof_rules", "saved_replies",
    ),
    "A few rows per installation": (
        "audit_checkpoint", "audit_head", "figures_folded", "installation", "nodes", "open_days",
        "provider_warnings", "schema_migrations", "secret_keys", "verified_sums_seal",
    ),
    "Deleted when processed": ("audit_budgets", "audit_repeats", "notices", "number_checks"),
    "Deleted with its support request": ("support_messages",),
    "Deleted after 30 days by a trigger": ("released_cash",),
}  # fmt: skip
