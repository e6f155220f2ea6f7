"""Password authentication of admins."""

import asyncio
from weakref import WeakValueDictionary

from tapgate.auth import login_failures
from tapgate.auth.charges import NO_CHARGE, Charge
from tapgate.auth.login_failures import LoginSource
from tapgate.auth.passwords import Passwords
from tapgate.clock import Clock
from tapgate.errors import ApiError, Code
from tapgate.http.client_addresses import get_address_key
from tapgate.schemas.admin import AdminStatus
from tapgate.store.database import Database
from tapgate.vault import Vault


class Logins:
    def __init__(
        self, database: Database, passwords: Passwords, clock: Clock, vault: Vault
    ) -> None:
        self._database = database
        self._vault = vault
        self._passwords = passwords
        self._clock = clock
        self._source_locks: WeakValueDictionary[LoginSource, asyncio.Lock] = WeakValueDictionary()

    async def authenticate(
        self, email: str, password: str, address: str, charge: Charge = NO_CHARGE
    ) -> int:
        """Return the id of the active admin with this email and password.

        Raises 401 if there is none, 429 if a limit is exceeded, and 503 if too many passwords are
        being verified. `charge` is taken for every attempt and refunded unless the response is 401.
        """
        source = LoginSource(self._hash_email(email), get_address_key(address))
        # Serialize the attempts from one source in this process: each attempt reserves a failure,
        # so concurrent logins with the correct password could otherwise exhaust the limit.
        async with self._source_locks.setdefault(source, asyncio.Lock()):
            await charge.charge()
            try:
                admin_id = await self._check_and_count(source, email.lower(), password)
            except ApiError:
                await charge.refund()
                raise
            if admin_id is None:
                raise ApiError(Code.UNAUTHORIZED, "Incorrect email or password.")
            await charge.refund()
            return admin_id

    async def _check_and_count(self, source: LoginSource, email: str, password: str) -> int | None:
        """Return the admin's id. If the login fails, count a failure and return None."""
        await login_failures.reserve(self._database, source, self._clock())
        try:
            admin_id = await self._find_admin(email, password, source.address)
        except ApiError:
            await login_failures.release(self._database, source)
            raise
        if admin_id is not None:
            await login_failures.release(self._database, source)
        return admin_id

    async def get_loggable_email(self, email: str) -> str:
        """Return the email if it belongs to an admin, otherwise a keyed hash.

        An unknown email may be a password typed into the wrong field, so it must not be logged.
        """
        known = await self._database.fetchval(
            "SELECT email FROM admins WHERE email = $1", email.lower()
        )
        return known or f"unknown:{self._hash_email(email)[:16]}"

    def _hash_email(self, email: str) -> str:
        return self._vault.keyed_hash("login", email.lower().encode()).hex()

    async def _find_admin(self, email: str, password: str, address: str) -> int | None:
        """Return the id of the active admin with this email and password, or None.

        For an unknown email, the check takes equally long.
        """
        admin = await self._database.fetchrow(
            "SELECT id, password_hash, status FROM admins WHERE email = $1", email
        )
        stored: str | None = admin and admin["password_hash"]
        if not await self._passwords.matches(stored, password, address):
            return None
        if admin is None or stored is None or admin["status"] != AdminStatus.ACTIVE:
            return None
        if self._passwords.is_outdated(stored):
            await self._rehash_password(admin["id"], stored, password, address)
        return int(admin["id"])

    async def _rehash_password(
        self, admin_id: int, outdated: str, password: str, address: str
    ) -> None:
        await self._database.execute(
            "UPDATE admins SET password_hash = $3 WHERE id = $1 AND password_hash = $2",
            admin_id,
            outdated,
            await self._passwords.hash(password, address),
        )
