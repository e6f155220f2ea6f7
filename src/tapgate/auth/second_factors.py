"""Admins' second factors: authenticator apps and passkeys, with recovery codes."""

import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from tapgate.auth import totp
from tapgate.core.settings.security import SecondFactor
from tapgate.core.vault import Vault
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.clock import Clock
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.admin import Factor

#: Age up to which a verified factor allows sensitive actions.
STEP_UP_LIFETIME: Final = timedelta(minutes=15)
#: Age up to which a new authenticator app can be confirmed.
PENDING_TOTP_LIFETIME: Final = timedelta(minutes=15)

_RECOVERY_CODE_COUNT: Final = 10
_RECOVERY_CODE_LENGTH: Final = 10  # 50 random bits
_RECOVERY_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_SEPARATORS: Final = str.maketrans("", "", " -")


#: In `details.methods`: the admin has no factor and signs in again at the identity provider.
SSO_METHOD: Final = "sso"
#: Recovery code name in the audit log. The code replaces a factor, and is not one itself.
RECOVERY_CODE: Final = "recovery_code"


class Factors:
    def __init__(self, database: Database, vault: Vault, clock: Clock, *, mode: str) -> None:
        self._database = database
        self._vault = vault
        self.clock = clock
        self.is_enabled = mode != SecondFactor.OFF
        self.is_required = mode == SecondFactor.REQUIRED

    async def list_enrolled(
        self, admin_id: int, source: Database | Transaction | None = None
    ) -> list[Factor]:
        """Return an admin's enrolled factors, or an empty list if factors are off."""
        return await _list_factors(source or self._database, admin_id) if self.is_enabled else []

    async def verify(self, admin_id: int, code: str) -> str | None:
        """Consume a TOTP or recovery code; return which of them it is, or None if it is wrong."""
        compact = code.translate(_SEPARATORS).lower()
        if await self._consume_totp(admin_id, compact):
            return Factor.TOTP
        return RECOVERY_CODE if await self._consume_recovery_code(admin_id, compact) else None

    async def start_totp(self, tx: Transaction, admin_id: int, session_id: int) -> str:
        """Create a secret that `confirm_totp` enrolls. An enrolled secret remains valid."""
        secret = totp.generate_secret()
        await tx.execute(
            """INSERT INTO admin_totp (admin_id, pending_secret, pending_session_id, pending_since)
               VALUES ($1, $2, $3, $4)
               ON CONFLICT (admin_id) DO UPDATE SET pending_secret = excluded.pending_secret,
                   pending_session_id = excluded.pending_session_id,
                   pending_since = excluded.pending_since""",
            admin_id,
            self._vault.seal(secret.encode(), build_vault_context(admin_id)),
            session_id,
            tx.now(),
        )
        return secret

    async def confirm_totp(
        self, tx: Transaction, admin_id: int, session_id: int, code: str
    ) -> list[str] | None:
        """Enroll the new secret and return new recovery codes, or None if the code is wrong.

        Only the session that created the secret can confirm it, until the secret expires or
        another factor is enrolled.
        """
        sealed = await tx.fetchval(
            """SELECT pending_secret FROM admin_totp
               WHERE admin_id = $1 AND pending_session_id = $2 AND pending_since > $3
               FOR NO KEY UPDATE""",
            admin_id,
            session_id,
            tx.now() - PENDING_TOTP_LIFETIME,
        )
        step = None if sealed is None else self._find_step(admin_id, sealed, code)
        if step is None:
            return None
        await tx.execute(
            """UPDATE admin_totp SET secret = pending_secret, last_step = $2, enrolled_at = $3
               WHERE admin_id = $1""",
            admin_id,
            step,
            tx.now(),
        )
        await self.discard_pending_totp(tx, admin_id)
        return await self.replace_recovery_codes(tx, admin_id)

    async def discard_pending_totp(self, tx: Transaction, admin_id: int) -> None:
        """Delete the secret that has not been confirmed."""
        await tx.execute(
            """UPDATE admin_totp SET pending_secret = NULL, pending_session_id = NULL,
                   pending_since = NULL WHERE admin_id = $1""",
            admin_id,
        )

    async def remove_totp(self, tx: Transaction, admin_id: int) -> None:
        """Remove the authenticator app."""
        await tx.execute("DELETE FROM admin_totp WHERE admin_id = $1", admin_id)

    async def remove_recovery_codes(self, tx: Transaction, admin_id: int) -> None:
        await tx.execute("DELETE FROM admin_recovery_codes WHERE admin_id = $1", admin_id)

    async def remove_all(self, tx: Transaction, admin_id: int) -> list[Factor]:
        """Remove all of an admin's factors and return them."""
        factors = await _list_factors(tx, admin_id)
        await self.remove_totp(tx, admin_id)
        await tx.execute("DELETE FROM admin_passkeys WHERE admin_id = $1", admin_id)
        await self.remove_recovery_codes(tx, admin_id)
        return factors

    async def count_recovery_codes(
        self, admin_id: int, source: Database | Transaction | None = None
    ) -> int:
        """Return the number of unused recovery codes."""
        count: int = await (source or self._database).fetchval(
            "SELECT count(*) FROM admin_recovery_codes WHERE admin_id = $1 AND used_at IS NULL",
            admin_id,
        )
        return count

    async def _consume_totp(self, admin_id: int, code: str) -> bool:
        async with self._database.transaction() as tx:
            # If a code is used concurrently, in any number of processes, only one use gets the lock
            # before the step is used.
            row = await tx.fetchrow(
                "SELECT secret, last_step FROM admin_totp "
                "WHERE admin_id = $1 AND secret IS NOT NULL FOR NO KEY UPDATE",
                admin_id,
            )
            step = None if row is None else self._find_step(admin_id, row["secret"], code)
            if row is None or step is None or step <= row["last_step"]:
                return False
            await tx.execute(
                "UPDATE admin_totp SET last_step = $2 WHERE admin_id = $1", admin_id, step
            )
            return True

    async def _consume_recovery_code(self, admin_id: int, code: str) -> bool:
        return bool(
            await self._database.fetchval(
                """UPDATE admin_recovery_codes SET used_at = $3
                   WHERE admin_id = $1 AND code_hash = ANY ($2) AND used_at IS NULL
                   RETURNING true""",
                admin_id,
                self._vault.list_keyed_hashes(*_build_hash_input(admin_id, code)),
                self.clock(),
            )
        )

    async def replace_recovery_codes(self, tx: Transaction, admin_id: int) -> list[str]:
        """Return new recovery codes. Earlier ones stop working."""
        await tx.execute("DELETE FROM admin_recovery_codes WHERE admin_id = $1", admin_id)
        codes = [_generate_recovery_code() for _ in range(_RECOVERY_CODE_COUNT)]
        await tx.executemany(
            """INSERT INTO admin_recovery_codes (admin_id, code_hash, created_at)
               VALUES ($1, $2, $3)""",
            [
                (admin_id, self._vault.keyed_hash(*_build_hash_input(admin_id, code)), tx.now())
                for code in codes
            ],
        )
        middle = _RECOVERY_CODE_LENGTH // 2
        return [f"{code[:middle]}-{code[middle:]}" for code in codes]

    def _find_step(self, admin_id: int, sealed: bytes, code: str) -> int | None:
        secret = self._vault.open(sealed, build_vault_context(admin_id)).decode()
        return totp.find_step(secret, code.translate(_SEPARATORS), self.clock())


def build_otp_required_error(methods: Sequence[str], message: str) -> ApiError:
    return ApiError(Code.OTP_REQUIRED, message, details={"methods": [*methods]})


def build_invalid_otp_error() -> ApiError:
    return ApiError(Code.INVALID_OTP, "The code is wrong, expired or already used.")


async def _list_factors(source: Database | Transaction, admin_id: int) -> list[Factor]:
    names = await source.fetchval(f"SELECT {build_factors_sql('$1')}", admin_id)
    return [Factor(name) for name in names]


def build_factors_sql(admin_id: str) -> str:
    """Return an SQL expression for the factors that an admin has enrolled."""
    return f"""ARRAY(
        SELECT 'totp' FROM admin_totp WHERE admin_id = {admin_id} AND secret IS NOT NULL
        UNION ALL
        SELECT 'passkey' WHERE EXISTS (SELECT FROM admin_passkeys WHERE admin_id = {admin_id}))"""


def _generate_recovery_code() -> str:
    return "".join(secrets.choice(_RECOVERY_ALPHABET) for _ in range(_RECOVERY_CODE_LENGTH))


def _build_hash_input(admin_id: int, code: str) -> tuple[str, bytes]:
    """Return the purpose and data for a recovery code's keyed hash."""
    return "recovery_code", b"%d %b" % (admin_id, code.encode())


def build_vault_context(admin_id: int) -> bytes:
    return b"totp %d" % admin_id
