"""The secrets that partners sign their webhooks with: shown once, sealed by the vault."""

import secrets

import msgspec

from tapgate import signing
from tapgate.vault import Vault

_RANDOM_BYTES = 32
_NOBODY = 0


class NewWebhookSecret(msgspec.Struct, frozen=True):
    """`secret` is shown once; its UTF-8 bytes are the HMAC key. `sealed` is what is kept."""

    secret: str
    sealed: bytes


class WebhookSecrets:
    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._nobodys = self.make(_NOBODY).sealed

    def make(self, partner_id: int) -> NewWebhookSecret:
        secret = secrets.token_urlsafe(_RANDOM_BYTES)
        return NewWebhookSecret(secret, self._vault.seal(secret.encode(), _context(partner_id)))

    def is_genuine(
        self, partner_id: int, sealed: bytes | None, signature: str | None, body: bytes
    ) -> bool:
        """`sealed` is None for a partner who is not there; that takes as long to find wrong as a
        wrong signature."""
        secret = (
            self._vault.open(self._nobodys, _context(_NOBODY))
            if sealed is None
            else self._vault.open(sealed, _context(partner_id))
        )
        genuine = signing.verify_webhook(secret, signature or "", body)
        return genuine and sealed is not None


def _context(partner_id: int) -> bytes:
    return b"webhook_secret %d" % partner_id
