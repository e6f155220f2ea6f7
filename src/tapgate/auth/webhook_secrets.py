"""Secrets with which partners sign their webhooks: returned once, stored sealed by the vault."""

import secrets
from collections.abc import Sequence

import msgspec

from tapgate.auth.secret_rows import rotate_secret
from tapgate.core.vault import Vault
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import signing

_RANDOM_BYTES = 32
_DUMMY_PARTNER_ID = 0
#: The current secret, and the previous secret during its grace period.
_MAX_VALID_SECRETS = 2


class NewWebhookSecret(msgspec.Struct, frozen=True):
    """New secret, returned once; its UTF-8 bytes are the HMAC key. `sealed` is stored."""

    secret: str
    sealed: bytes


class WebhookSecrets:
    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._dummy_sealed_secret = self.create(_DUMMY_PARTNER_ID).sealed

    def create(self, partner_id: int) -> NewWebhookSecret:
        secret = secrets.token_urlsafe(_RANDOM_BYTES)
        return NewWebhookSecret(
            secret, self._vault.seal(secret.encode(), build_vault_context(partner_id))
        )

    async def rotate(
        self, tx: Transaction, partner_id: int, *, grace_seconds: int, received_by: int | None
    ) -> str | None:
        """Replace a partner's secret and return the new one, or None without such a partner.

        `received_by` is the admin who sees it.
        """
        new = self.create(partner_id)
        row = await rotate_secret(
            tx,
            "partners",
            partner_id,
            new.sealed,
            column="webhook_secret",
            until_column="previous_webhook_secret_until",
            grace_seconds=grace_seconds,
            webhook_secret_by=received_by,
        )
        return None if row is None else new.secret

    def is_valid_signature(
        self, partner_id: int, sealed: Sequence[bytes], signature: str | None, body: bytes
    ) -> bool:
        """Return whether the signature was made with one of the partner's valid secrets.

        For an unknown partner, `sealed` is empty. A fixed number of secrets is always checked, with
        dummy secrets added, so that timing reveals neither whether a partner exists nor whether
        its secret was rotated.
        """
        candidates = [(partner_id, sealed_secret) for sealed_secret in sealed]
        candidates += [(_DUMMY_PARTNER_ID, self._dummy_sealed_secret)] * (
            _MAX_VALID_SECRETS - len(sealed)
        )
        is_valid = False
        for owner, sealed_secret in candidates:
            secret = self._vault.open(sealed_secret, build_vault_context(owner))
            matches = signing.verify_webhook(secret, signature or "", body)
            is_valid |= matches and owner != _DUMMY_PARTNER_ID
        return is_valid


def build_vault_context(partner_id: int) -> bytes:
    return b"webhook_secret %d" % partner_id
