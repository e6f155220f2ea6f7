"""All columns with sealed values, keyed hashes and MACs.

A test compares them with the database columns, so that a new one cannot be forgotten.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

from tapgate.auth.hmac_keys import build_vault_context as build_hmac_key_context
from tapgate.auth.oidc.logins import build_identity_context
from tapgate.auth.second_factors import build_vault_context as build_totp_context
from tapgate.auth.sessions import build_id_token_context
from tapgate.auth.webhook_secrets import build_vault_context as build_partner_context
from tapgate.business.approvals.model import get_seal_context as build_approval_context
from tapgate.business.customers.subscribers.kyc_documents.model import (
    build_seal_context as build_document_context,
)
from tapgate.business.finance.day_close.ledger_keys import (
    build_vault_context as build_ledger_key_context,
)
from tapgate.business.payments.wallets.statements.operations import (
    get_seal_context as build_statement_context,
)
from tapgate.business.support.queries import get_seal_context as build_support_context
from tapgate.events.notifications.notification_messages import (
    build_seal_context as build_message_context,
)
from tapgate.events.webhooks.model import build_secret_context as build_endpoint_context
from tapgate.ledger.card_proofs.issuer_keys import build_master_context, build_own_keys_context
from tapgate.ledger.card_proofs.issuer_keys import build_vault_context as build_keyset_context
from tapgate.messenger.inbox import get_sealing_context as build_inbox_context
from tapgate.messenger.kept_images import get_sealing_context as build_kept_image_context
from tapgate.messenger.outbox.outbox_messages import get_sealing_context as build_outbox_context
from tapgate.messenger.transcript import get_sealing_context as build_transcript_context

_SMALL_BATCH: Final = 200
_LARGE_BATCH: Final = 8


class SealedColumn(NamedTuple):
    """Column with values that the vault sealed. The context is built from the row's key."""

    table: str
    column: str
    label: str
    build_context: Callable[..., bytes]
    key: tuple[str, ...] = ("id",)
    batch_size: int = _SMALL_BATCH

    @property
    def name(self) -> str:
        return f"{self.table}.{self.column}"


def _build_approval_context(part: str, approval_id: int) -> bytes:
    return build_approval_context(approval_id, part)


_request_context: Final[Callable[..., bytes]] = partial(_build_approval_context, "request")
_result_context: Final[Callable[..., bytes]] = partial(_build_approval_context, "result")

SEALED_COLUMNS: Final = (
    SealedColumn("hmac_keys", "secret", "signing keys", build_hmac_key_context),
    SealedColumn("partners", "webhook_secret", "partners' webhook secrets", build_partner_context),
    SealedColumn(
        "partners", "previous_webhook_secret", "previous webhook secrets", build_partner_context
    ),
    SealedColumn("admin_totp", "secret", "authenticator apps", build_totp_context, ("admin_id",)),
    SealedColumn(
        "admin_totp", "pending_secret", "new authenticator apps", build_totp_context, ("admin_id",)
    ),
    SealedColumn(
        "oidc_logins", "sealed_identity", "single sign-ons", build_identity_context, ("state_hash",)
    ),
    SealedColumn("sessions", "sealed_id_token", "ID tokens of sessions", build_id_token_context),
    SealedColumn("webhook_endpoints", "secret", "endpoint secrets", build_endpoint_context),
    SealedColumn(
        "webhook_endpoints", "previous_secret", "previous endpoint secrets", build_endpoint_context
    ),
    SealedColumn("card_keysets", "keys", "keysets", build_keyset_context),
    SealedColumn("card_keysets", "master_key", "master keys of keysets", build_master_context),
    SealedColumn(
        "card_own_keys", "keys", "own keys of cards", build_own_keys_context, ("card_id",)
    ),
    SealedColumn(
        "ledger_keys",
        "private_key",
        "ledger keys",
        build_ledger_key_context,
        ("key_id",),
    ),
    SealedColumn("approvals", "sealed_request", "requests for approval", _request_context),
    SealedColumn("approvals", "sealed_result", "results of approvals", _result_context),
    SealedColumn("messages", "parameters", "messages to people", build_message_context),
    SealedColumn(
        "support_messages",
        "sealed",
        "support messages",
        build_support_context,
        ("request_id", "number"),
    ),
    SealedColumn(
        "kyc_documents", "image", "documents", build_document_context, batch_size=_LARGE_BATCH
    ),
    SealedColumn(
        "statements", "file", "statements", build_statement_context, batch_size=_LARGE_BATCH
    ),
    SealedColumn("messenger.received", "sealed", "received messages", build_inbox_context),
    SealedColumn("messenger.outbox", "content", "outgoing messages", build_outbox_context),
    SealedColumn(
        "messenger.images",
        "sealed",
        "images in conversations",
        build_kept_image_context,
        batch_size=_LARGE_BATCH,
    ),
    SealedColumn(
        "messenger.conversations",
        "transcript",
        "conversations",
        build_transcript_context,
        ("address",),
    ),
)

#: Columns with keyed hashes, which cannot be moved without the original values; see `hashes.py`.
HASH_COLUMNS: Final = (
    "pins.salt",
    "pins.verifier",
    "api_keys.key_hash",
    "api_keys.previous_key_hash",
    "admin_recovery_codes.code_hash",
    "admin_invitations.token_hash",
    "refresh_tokens.token_hash",
    "statements.token_hash",
    "one_time_codes.code_hash",
    "messenger.codes.code_hash",
    "messenger.images.digest",
    "oidc_logins.state_hash",
)

#: Columns with checkpoint MACs, which `chains.py` renews.
MAC_COLUMNS: Final = (
    "verified_ranges.mac",
    "verified_sums_seal.mac",
    "archived_months.mac",
    "audit_checkpoint.mac",
)


def build_row_context(column: SealedColumn, row: Any) -> bytes:
    return column.build_context(*(row[name] for name in column.key))
