"""The secrets that partners sign their webhooks with: shown once, stored sealed by the vault."""

import secrets
from collections.abc import Sequence

import msgspec

from tapgate import signing
from tapgate.vault import Vault

_RANDOM_BYTES = 32
_NOBODY = 0
#: The current secret, and the previous one during its grace period.
_MAX_VALID = 2


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
        self, partner_id: int, sealed: Sequence[bytes], signature: str | None, body: bytes
    ) -> bool:
        """Return whether one of the partner's valid secrets made the signature.

        An unknown partner has none. The number of secrets is padded, so that the time this takes
        reveals neither whether a partner exists nor whether its secret was rotated.
        """
        candidates = [(partner_id, one) for one in sealed]
        candidates += [(_NOBODY, self._nobodys)] * (_MAX_VALID - len(sealed))
        genuine = False
        for owner, one in candidates:
            secret = self._vault.open(one, _context(owner))
            matches = signing.verify_webhook(secret, signature or "", body)
            genuine |= matches and owner != _NOBODY
        return genuine


def _context(partner_id: int) -> bytes:
    return b"webhook_secret %d" % partner_id
