"""Credentials and their owners, the clock that checks them, and actors of audit entries."""

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pyotp
import pytest

from builders.passwords import FAST_ARGON2
from harness import insert_row
from tapgate.auth.actors import Actor
from tapgate.auth.authenticator import Authenticator
from tapgate.auth.logins import Logins
from tapgate.auth.passwords import Passwords
from tapgate.core.id_generator import IdGenerator
from tapgate.events.audit.chain import Sealer
from tapgate.http.api.services import Services
from tapgate.ledger.accounts import open_account
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.signals import Signals
from tapgate.runtime.store.transaction import Transaction, open_transaction
from tapgate_client.errors import ApiError, Code


class FakeClock:
    """Clock that advances only when a test sets it."""

    def __init__(self, moment: datetime | None = None) -> None:
        self.now = moment or datetime(2026, 1, 31, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def milliseconds(self) -> int:
        return int(self.now.timestamp() * 1000)

    def advance(self, **delta: float) -> None:
        self.now += timedelta(**delta)


EMAIL = "ada@example.com"
PASSWORD = "correct horse battery"
#: Of enrollments without a request.
SESSION_ID = 1
_sequence = itertools.count(1)


class GatewayProcess(msgspec.Struct):
    database: Database
    signals: Signals
    authenticator: Authenticator
    #: Hashes passwords with `FAST_ARGON2`.
    logins: Logins
    clock: FakeClock
    new_id: IdGenerator

    def transaction(self) -> contextlib.AbstractAsyncContextManager[Transaction]:
        return open_transaction(self.database, self.clock, self.new_id)


class OwnerBuilder:
    """Creates the rows that own credentials."""

    def __init__(self, database: Database, clock: FakeClock, new_id: IdGenerator) -> None:
        self.database = database
        self._clock = clock
        self._new_id = new_id

    async def create_admin(
        self, email: str = EMAIL, password: str = PASSWORD, role: str = "system_admin"
    ) -> int:
        password_hash = await Passwords(FAST_ARGON2).hash(password)
        fields = {"email": email, "name": "Ada", "role": role, "password_hash": password_hash}
        return await self._insert("admins", self._new_id(), **fields)

    async def create_processor(self) -> int:
        processor_id, now = self._new_id(), self._clock()
        account_id = await self._create_account(processor_id, "settlement", "Corner Shop")
        contact = {"phone_number": "+23276000001", "email": "shop@example.com"}
        return await self._insert(
            "processors", processor_id, account_id=account_id, updated_at=now, **contact
        )

    async def create_terminal(self, processor_id: int) -> int:
        fields = {"processor_id": processor_id, "name": "Till 1"}
        return await self._insert("terminals", self._new_id(), **fields)

    async def create_partner(self) -> int:
        partner_id = self._new_id()
        account_id = await self._create_account(partner_id, "clearing", "Big Bank")
        return await self._insert("partners", partner_id, account_id=account_id, webhook_secret=b"")

    async def create_subscriber(self) -> int:
        subscriber_id, now = self._new_id(), self._clock()
        account_id = await self._create_account(subscriber_id, "wallet", "Aminata Kamara")
        person = {
            "phone_number": f"+232760{next(_sequence):05}",
            "first_name": "Aminata",
            "last_name": "Kamara",
        }
        return await self._insert(
            "subscribers", subscriber_id, account_id=account_id, updated_at=now, **person
        )

    async def _insert(self, table: str, id: int, **columns: Any) -> int:
        await insert_row(self.database, table, id=id, created_at=self._clock(), **columns)
        return id

    async def _create_account(self, owner_id: int, kind: str, holder_name: str) -> int:
        account_id = self._new_id()
        async with self.database.transaction() as tx:
            await open_account(
                tx,
                id=account_id,
                kind=kind,
                owner_id=owner_id,
                holder_name=holder_name,
                public_name=holder_name,
                currency="SLE",
                kyc_level=1 if kind == "wallet" else None,
            )
        return account_id


async def catch_api_error(operation: Awaitable[object]) -> ApiError:
    """Return the `ApiError` that the operation raises."""
    with pytest.raises(ApiError) as caught:
        await operation
    return caught.value


async def catch_unauthorized(operation: Awaitable[object]) -> str | None:
    """Return the message of the `UNAUTHORIZED` error that the operation raises."""
    error = await catch_api_error(operation)
    assert error.code is Code.UNAUTHORIZED
    return error.message


Headers = dict[str, str]
LogIn = Callable[..., Awaitable[Headers]]
ListAuditEntries = Callable[..., Awaitable[list[dict[str, Any]]]]


WriteEntry = Callable[..., Awaitable[None]]

ACTOR = Actor(
    record={"type": "admin", "id": "adm_0000000000001", "name": "Aminata", "role": "system_admin"},
    ip="192.0.2.7",
    request_id="req-1",
)


async def assert_seals(sealer: Sealer, count: int) -> None:
    """Seal pending entries for up to 30 seconds and assert that exactly `count` are sealed.

    Several attempts may be needed: sealing waits for all running transactions on the server,
    such as autovacuum in another test's database.
    """
    sealed = 0
    async with asyncio.timeout(30):
        while sealed < count:
            sealed += await sealer.seal_pending()
            await asyncio.sleep(0.01)
    assert sealed == count


def get_previous_code(services: Services, app: pyotp.TOTP) -> str:
    """Return the code before the current one, and stop the clock that codes are compared with.

    Otherwise, the code would expire if its next 30 seconds began before it is verified.
    """
    now = services.clock()
    services.authenticator.factors.clock = lambda: now
    return app.at(now - timedelta(seconds=30))


async def enroll_app(services: Services, admin_id: int) -> pyotp.TOTP:
    """Enroll an authenticator app, whose current code remains usable.

    The admin's sessions then have a factor that was not verified recently.
    """
    auth = services.authenticator
    async with services.transaction() as tx:
        app = pyotp.TOTP(await auth.factors.start_totp(tx, admin_id, SESSION_ID))
        code = get_previous_code(services, app)
        assert await auth.factors.confirm_totp(tx, admin_id, SESSION_ID, code)
        await auth.sessions.publish_change(tx)
    return app
