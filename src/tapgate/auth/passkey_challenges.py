"""Challenges that a passkey signs: valid for five minutes, for one purpose, and once.

A challenge carries its expiry and a MAC, so every process and node can verify it and unused
challenges take no space. A used challenge is stored until long after its expiry.
"""

import secrets
from datetime import UTC, datetime, timedelta
from typing import Final

from tapgate.core.vault import Vault
from tapgate.runtime.store.database import Database
from tapgate_client.clock import Clock

CHALLENGE_LIFETIME: Final = timedelta(minutes=5)

_NONCE_BYTES: Final = 16
_TIME_BYTES: Final = 8
_SIGNED_BYTES: Final = _NONCE_BYTES + _TIME_BYTES
_VAULT_PURPOSE: Final = "passkey_challenge"


class PasskeyChallenges:
    def __init__(self, database: Database, vault: Vault, clock: Clock) -> None:
        self._database = database
        self._vault = vault
        self._clock = clock

    def create(self, purpose: bytes) -> bytes:
        expires_at = int((self._clock() + CHALLENGE_LIFETIME).timestamp())
        signed = secrets.token_bytes(_NONCE_BYTES) + expires_at.to_bytes(_TIME_BYTES, "big")
        return signed + self._vault.keyed_hash(_VAULT_PURPOSE, signed + purpose)

    async def consume(self, challenge: bytes, purpose: bytes) -> bool:
        """Use up a challenge; return False if it is forged, expired, used, or for another purpose.

        Among concurrent uses, in any number of processes, only one returns True.
        """
        signed, mac = challenge[:_SIGNED_BYTES], challenge[_SIGNED_BYTES:]
        if not self._vault.matches_hash(mac, _VAULT_PURPOSE, signed + purpose):
            return False
        nonce, seconds = signed[:_NONCE_BYTES], int.from_bytes(signed[_NONCE_BYTES:], "big")
        expires_at = datetime.fromtimestamp(seconds, UTC)
        if expires_at <= self._clock():
            return False
        return bool(
            await self._database.fetchval(
                """INSERT INTO used_passkey_challenges (nonce, expires_at) VALUES ($1, $2)
                   ON CONFLICT DO NOTHING RETURNING true""",
                nonce,
                expires_at,
            )
        )
