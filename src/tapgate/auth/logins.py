"""Authenticates admins with a password and, if enrolled, a second factor, or a passkey."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple
from weakref import WeakValueDictionary

from tapgate.auth import login_failures
from tapgate.auth.login_failures import LoginSource
from tapgate.auth.passkeys import InvalidPasskeyError, Passkeys
from tapgate.auth.passwords import Passwords
from tapgate.auth.rate_limit_cost import NO_COST, RateLimitCost
from tapgate.auth.second_factors import Factors, build_invalid_otp_error, build_otp_required_error
from tapgate.core.vault import Vault
from tapgate.runtime.client_addresses import get_address_key
from tapgate.runtime.store.database import Database
from tapgate_client.clock import Clock
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.admin import AdminStatus, Factor
from tapgate_client.schemas.passkeys import AssertedCredential

#: Address under which an admin's wrong codes are counted in addition to the client's. The
#: limit therefore holds for all addresses together. Only callers with the password reach it.
_ANY_ADDRESS = "*"


class AuthenticatedAdmin(NamedTuple):
    id: int
    #: The second factor that was verified, or None if the admin has none.
    factor: str | None = None
    #: The verified password's hash. It must still be the admin's when a session starts.
    password_hash: str | None = None

    def __repr__(self) -> str:
        return f"AuthenticatedAdmin(id={self.id}, factor={self.factor!r})"


class PasskeyRejectedError(ApiError):
    """A passkey was rejected. The reason, and the admin if the passkey is known, are for audit."""

    def __init__(self, code: Code, message: str, *, reason: str, email: str | None) -> None:
        super().__init__(code, message)
        self.reason = reason
        self.email = email


class Logins:
    def __init__(
        self,
        database: Database,
        passwords: Passwords,
        clock: Clock,
        vault: Vault,
        factors: Factors,
        passkeys: Passkeys,
    ) -> None:
        self._database = database
        self._vault = vault
        self.passwords = passwords
        self._clock = clock
        self._factors = factors
        self._passkeys = passkeys
        self.source_locks: WeakValueDictionary[LoginSource, asyncio.Lock] = WeakValueDictionary()

    async def authenticate(
        self,
        email: str,
        password: str,
        address: str,
        cost: RateLimitCost = NO_COST,
        *,
        otp: str | None = None,
    ) -> AuthenticatedAdmin:
        """Return the active admin with this email and password.

        Raises 401 if there is none, `OTP_REQUIRED` or `INVALID_OTP` if a second factor is enrolled
        and `otp` is missing or wrong, 429 if a limit is exceeded, and 503 if too many passwords are
        being verified. `cost` is taken for every attempt and refunded unless the password or the
        code is wrong.
        """
        source = self._build_source(email, address)
        # Serialize the attempts from one source in this process: each attempt reserves a failure,
        # so concurrent logins with the correct password could otherwise exhaust the limit.
        async with self.source_locks.setdefault(source, asyncio.Lock()):
            await cost.take()
            try:
                admin = await self._check_and_count(source, email.lower(), password, otp)
            except ApiError as error:
                if error.code is not Code.INVALID_OTP:
                    await cost.refund()
                raise
            if admin is None:
                raise ApiError(Code.UNAUTHORIZED, "Incorrect email or password.")
            await cost.refund()
            return admin

    async def authenticate_passkey(
        self, credential: AssertedCredential, address: str, cost: RateLimitCost = NO_COST
    ) -> AuthenticatedAdmin:
        """Return the active admin who owns a passkey.

        Raises 401 if the passkey is unknown or its proof is wrong, and 429 if a limit is exceeded.
        Failures are counted like wrong passwords.
        """
        await cost.take()
        passkey = await self._passkeys.find(credential)
        if passkey is None:
            raise _build_passkey_error("Unknown passkey")
        try:
            async with self._count_failure(self._build_source(passkey["email"], address)):
                await self._passkeys.verify(passkey, credential)
                if passkey["status"] != AdminStatus.ACTIVE:
                    raise InvalidPasskeyError("The admin is disabled")
        except InvalidPasskeyError as error:
            raise _build_passkey_error(error.reason, passkey["email"]) from None
        except ApiError:
            await cost.refund()
            raise
        await cost.refund()
        return AuthenticatedAdmin(passkey["admin_id"], Factor.PASSKEY)

    async def verify_passkey(
        self, admin_id: int, credential: AssertedCredential, address: str
    ) -> str:
        """Verify a logged-in admin's passkey; return the factor.

        Raises `INVALID_OTP` if the proof is wrong. Failures are counted like failed logins.
        """
        email = await self._load_email(admin_id)
        try:
            async with self._count_failure(self._build_source(email, address)):
                passkey = await self._passkeys.find(credential)
                if passkey is None or passkey["admin_id"] != admin_id:
                    raise InvalidPasskeyError("Not this admin's passkey")
                await self._passkeys.verify(passkey, credential)
        except InvalidPasskeyError as error:
            raise PasskeyRejectedError(
                Code.INVALID_OTP,
                "The passkey was not accepted. Try again.",
                reason=error.reason,
                email=email,
            ) from None
        return Factor.PASSKEY

    @asynccontextmanager
    async def _count_failure(self, source: LoginSource) -> AsyncIterator[None]:
        """Count a failure, and release it if the body succeeds."""
        async with self.source_locks.setdefault(source, asyncio.Lock()):
            await login_failures.reserve(self._database, source, self._clock())
            yield
            await login_failures.release(self._database, source)

    async def verify_code(self, admin_id: int, code: str, address: str) -> str:
        """Verify a logged-in admin's code; return which factor it belongs to.

        Raises `INVALID_OTP` if it is wrong. Wrong codes are counted like failed logins.
        """
        source = await self._load_source(admin_id, address)
        async with self._count_failure(source):
            return await self._check_code(source, admin_id, code)

    async def verify_password(self, admin_id: int, password: str, address: str) -> bool:
        """Return whether a logged-in admin's password is correct.

        Wrong passwords are counted like failed logins.
        """
        source = await self._load_source(admin_id, address)
        stored = await self._database.fetchval(
            "SELECT password_hash FROM admins WHERE id = $1", admin_id
        )
        async with self.source_locks.setdefault(source, asyncio.Lock()):
            await login_failures.reserve(self._database, source, self._clock())
            try:
                is_correct = await self.passwords.matches(stored, password, source.address)
            except ApiError:
                await login_failures.release(self._database, source)
                raise
            if is_correct:
                await login_failures.release(self._database, source)
            return is_correct

    async def _check_and_count(
        self, source: LoginSource, email: str, password: str, otp: str | None
    ) -> AuthenticatedAdmin | None:
        """Return the admin. If the login fails, count a failure and return None or raise."""
        await login_failures.reserve(self._database, source, self._clock())
        try:
            found = await self._find_admin(email, password, source.address)
            if found is None:
                return None
            factor = await self._check_factor(source, found.id, otp)
            admin = found._replace(factor=factor)
        except ApiError as error:
            if error.code is not Code.INVALID_OTP:
                await login_failures.release(self._database, source)
            raise
        await login_failures.release(self._database, source)
        return admin

    async def _check_factor(
        self, source: LoginSource, admin_id: int, otp: str | None
    ) -> str | None:
        factors = await self._factors.list_enrolled(admin_id)
        if not factors:
            return None
        if otp is None:
            raise build_otp_required_error(factors, "A second factor is required to log in.")
        return await self._check_code(source, admin_id, otp)

    async def _check_code(self, source: LoginSource, admin_id: int, code: str) -> str:
        account = LoginSource(source.email, _ANY_ADDRESS)
        await login_failures.reserve(self._database, account, self._clock())
        factor = await self._factors.verify(admin_id, code)
        if factor is None:
            raise build_invalid_otp_error()
        await login_failures.release(self._database, account)
        return factor

    def _build_source(self, email: str, address: str) -> LoginSource:
        return LoginSource(self._hash_email(email), get_address_key(address))

    async def _load_source(self, admin_id: int, address: str) -> LoginSource:
        return self._build_source(await self._load_email(admin_id), address)

    async def _load_email(self, admin_id: int) -> str:
        email: str = await self._database.fetchval(
            "SELECT email FROM admins WHERE id = $1", admin_id
        )
        return email

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

    async def _find_admin(
        self, email: str, password: str, address: str
    ) -> AuthenticatedAdmin | None:
        """Return the active admin with this email and password, or None.

        For an unknown email, the check takes equally long.
        """
        admin = await self._database.fetchrow(
            "SELECT id, password_hash, status FROM admins WHERE email = $1", email
        )
        stored: str | None = admin and admin["password_hash"]
        if not await self.passwords.matches(stored, password, address):
            return None
        if admin is None or stored is None or admin["status"] != AdminStatus.ACTIVE:
            return None
        if self.passwords.is_outdated(stored):
            new = await self.passwords.hash(password, address)
            if not await self._replace_hash(admin["id"], stored, new):
                # A concurrent login has replaced it, or the password was changed.
                return await self._find_admin(email, password, address)
            stored = new
        return AuthenticatedAdmin(admin["id"], password_hash=stored)

    async def _replace_hash(self, admin_id: int, outdated: str, new: str) -> bool:
        """Store a new hash, and return False if the hash is no longer the outdated one."""
        replaced = await self._database.fetchval(
            """UPDATE admins SET password_hash = $3 WHERE id = $1 AND password_hash = $2
               RETURNING true""",
            admin_id,
            outdated,
            new,
        )
        return bool(replaced)


def _build_passkey_error(reason: str, email: str | None = None) -> PasskeyRejectedError:
    return PasskeyRejectedError(
        Code.UNAUTHORIZED, "The passkey was not accepted.", reason=reason, email=email
    )
