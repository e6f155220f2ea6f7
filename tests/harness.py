"""Callers of every kind, subscribers and their messages, for HTTP API tests.

A caller is passed to the client as `auth`:
`await client.get(url, auth=await harness.create_admin("S"))`.
"""

import itertools
import time
from collections.abc import Callable, Generator
from datetime import timedelta
from typing import Any, Final

import httpx2

from tapgate.auth.owners import parse_owner
from tapgate.events.notifications.notification_messages import list_pending
from tapgate.http.api.access import ROLES_BY_LETTER
from tapgate.http.api.owner_access import OWNER_ROLES_BY_LETTER
from tapgate.http.api.services import Services
from tapgate.ledger import chart, commands
from tapgate.ledger.accounts import open_account
from tapgate.ledger.commands import Command
from tapgate.ledger.pins.pin_verifier import PinVerifier
from tapgate.ledger.rules import loaded_rules as ledger_rules
from tapgate.runtime.store.database import Database
from tapgate_client import ids, money, signing
from tapgate_client.clock import format_rfc3339, system_clock

PIN = "4071"
WRONG_PIN = "9183"

_sequence = itertools.count(1)


def split_words(text: str) -> list[str]:
    """Split into words, so that a PIN does not match digits inside a longer ID or a time."""
    return "".join(char if char.isalnum() else " " for char in text).split()


class BearerAuth(httpx2.Auth):
    """Authenticates with an API key or an access token."""

    def __init__(self, credential: str, public_id: str) -> None:
        self.credential = credential
        self.id = public_id

    def auth_flow(
        self, request: httpx2.Request
    ) -> Generator[httpx2.Request, httpx2.Response, None]:
        request.headers["Authorization"] = f"Bearer {self.credential}"
        yield request


class ServiceAuth(httpx2.Auth):
    """Signs each request as an internal service."""

    def __init__(self, name: str, secret: str, now: Callable[[], float] = time.time) -> None:
        self.id = name
        self.secret = secret.encode()
        self._now = now

    def auth_flow(
        self, request: httpx2.Request
    ) -> Generator[httpx2.Request, httpx2.Response, None]:
        path, _, query = request.url.raw_path.partition(b"?")
        timestamp = str(int(self._now()))
        request.headers["X-Service-Name"] = self.id
        request.headers["X-Service-Timestamp"] = timestamp
        request.headers["X-Service-Signature"] = signing.sign_service(
            self.secret, request.method, path.decode(), query, timestamp
        )
        yield request


class HmacAuth(httpx2.Auth):
    """Signs each request with a processor, terminal or partner key."""

    requires_request_body = True

    def __init__(self, key_id: str, secret: str, partner_id: str | None = None) -> None:
        self.id = key_id
        self.key_id = key_id
        self.secret = secret
        self.partner_id = partner_id

    def auth_flow(
        self, request: httpx2.Request
    ) -> Generator[httpx2.Request, httpx2.Response, None]:
        path = request.url.raw_path.partition(b"?")[0].decode()
        timestamp = format_rfc3339(system_clock())
        request.headers["X-API-Key-ID"] = self.id
        request.headers["X-Timestamp"] = timestamp
        request.headers["X-Signature"] = signing.sign(
            self.secret.encode(), request.method, path, timestamp, request.content
        )
        if self.partner_id is not None:
            request.headers["X-Partner-ID"] = self.partner_id
        yield request


async def insert_row(database: Database, table: str, **columns: Any) -> None:
    placeholders = ", ".join(f"${index}" for index in range(1, len(columns) + 1))
    await database.execute(
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({placeholders})", *columns.values()
    )


class Harness:
    def __init__(self, services: Services, client: httpx2.AsyncClient) -> None:
        self.services = services
        self.database = services.database
        self.client = client
        self.get, self.post = client.get, client.post
        self.put, self.delete = client.put, client.delete

    async def create_admin(self, role: str = "A") -> BearerAuth:
        """Create an admin and log in.

        `role` is a letter of `ROLES_BY_LETTER`.
        """
        services, admin_id = self.services, self.services.new_id()
        async with services.transaction() as tx:
            await tx.execute(
                """INSERT INTO admins (id, email, name, role, password_hash, created_at)
                   VALUES ($1, $2, 'Ada', $3, 'unusable password hash', $4)""",
                admin_id,
                f"ada{next(_sequence)}@example.com",
                ROLES_BY_LETTER[role],
                services.clock(),
            )
            tokens = await services.authenticator.sessions.start(tx, admin_id)
        return BearerAuth(tokens.token, ids.encode(ids.ADMIN, admin_id))

    async def create_owner_user(self, role: str, owner_id: str) -> BearerAuth:
        """Create a user of a processor, partner or agent, and log in.

        `role` is a letter of `OWNER_ROLES_BY_LETTER`.
        """
        services, admin_id, owner = self.services, self.services.new_id(), parse_owner(owner_id)
        assert owner is not None
        async with services.transaction() as tx:
            await tx.execute(
                """INSERT INTO admins (id, email, name, role, password_hash, created_at, owner_type,
                                       owner_id)
                   VALUES ($1, $2, 'Musa', $3, 'unusable password hash', $4, $5, $6)""",
                admin_id,
                f"musa{next(_sequence)}@example.com",
                OWNER_ROLES_BY_LETTER[role],
                services.clock(),
                owner.type,
                owner.id,
            )
            tokens = await services.authenticator.sessions.start(tx, admin_id)
        return BearerAuth(tokens.token, ids.encode(ids.ADMIN, admin_id))

    async def create_api_key(self, *scopes: str, owner_id: str = "") -> BearerAuth:
        """Create an API key, with `owner_id` for one processor, partner or agent."""
        admin = await self.create_admin()
        async with self.services.transaction() as tx:
            record, key = await self.services.authenticator.api_keys.create(
                tx,
                name="Shop",
                scopes=scopes,
                expires_at=None,
                created_by=ids.decode(ids.ADMIN, admin.id) or 0,
                owner=parse_owner(owner_id),
            )
        return BearerAuth(key, ids.encode(ids.KEY, record.id))

    async def create_processor(self, name: str = "Shop", public_name: str = "Shop") -> HmacAuth:
        """Create a processor and return its key."""
        processor_id = self.services.new_id()
        async with self.services.transaction() as tx:
            names = (name, public_name)
            account_id = await self.create_account(tx, chart.SETTLEMENT, processor_id, *names)
            await tx.execute(
                """INSERT INTO processors
                       (id, account_id, phone_number, email, created_at, updated_at)
                   VALUES ($1, $2, '+23276000000', 'shop@example.com', now(), now())""",
                processor_id,
                account_id,
            )
            keys = self.services.authenticator.hmac_keys
            key = await keys.create(tx, processor_id=processor_id)
        return HmacAuth(ids.encode(ids.KEY, key.id), key.secret)

    async def get_account_id(self, key: HmacAuth) -> str:
        """Return the account ID for the processor or partner that owns a key."""
        account_id = await self.database.fetchval(
            """SELECT account.id FROM hmac_keys key
               JOIN accounts account ON account.owner_id = coalesce(processor_id, partner_id)
               WHERE key.id = $1""",
            ids.decode(ids.KEY, key.id),
        )
        return ids.encode(ids.ACCOUNT, account_id)

    async def get_processor_id(self, key: HmacAuth) -> str:
        processor_id = await self.database.fetchval(
            "SELECT processor_id FROM hmac_keys WHERE id = $1", ids.decode(ids.KEY, key.id)
        )
        return ids.encode(ids.PROCESSOR, processor_id)

    async def create_second_key(self, key: HmacAuth) -> HmacAuth:
        """Create another key for the same processor."""
        async with self.services.transaction() as tx:
            processor_id = await tx.fetchval(
                "SELECT processor_id FROM hmac_keys WHERE id = $1", ids.decode(ids.KEY, key.id)
            )
            keys = self.services.authenticator.hmac_keys
            created = await keys.create(tx, processor_id=processor_id)
        return HmacAuth(ids.encode(ids.KEY, created.id), created.secret)

    async def create_partner(self, name: str = "Shop", public_name: str = "Shop") -> HmacAuth:
        """Create a partner and return its key."""
        partner_id = self.services.new_id()
        async with self.services.transaction() as tx:
            names = (name, public_name)
            account_id = await self.create_account(tx, chart.CLEARING, partner_id, *names)
            await tx.execute(
                """INSERT INTO partners (id, account_id, webhook_secret, created_at)
                   VALUES ($1, $2, $3, now())""",
                partner_id,
                account_id,
                self.services.authenticator.webhook_secrets.create(partner_id).sealed,
            )
            key = await self.services.authenticator.hmac_keys.create(tx, partner_id=partner_id)
        partner = ids.encode(ids.PARTNER, partner_id)
        return HmacAuth(ids.encode(ids.KEY, key.id), key.secret, partner)

    async def create_account(
        self, tx: Any, kind: str, owner_id: int, name: str, public_name: str
    ) -> int:
        account_id = self.services.new_id()
        await open_account(
            tx,
            id=account_id,
            kind=kind,
            owner_id=owner_id,
            holder_name=name,
            public_name=public_name,
            currency=self.services.settings.currency,
        )
        return account_id

    def get_service_auth(self, name: str = "messenger") -> ServiceAuth:
        return ServiceAuth(name, self.services.settings.service_secrets[name])

    def new_phone_number(self) -> str:
        """Return an unused phone number."""
        return f"+232{76_000_000 + next(_sequence)}"

    async def create_subscriber(self, *, balance: str = "0", **fields: Any) -> dict[str, Any]:
        """Register a subscriber, by default with the PIN `PIN`, and return the record."""
        registration = {
            "phone_number": self.new_phone_number(),
            "first_name": "Aminata",
            "last_name": "Kamara",
            "pin": PIN,
            **fields,
        }
        response = await self.post(
            "/api/v1/subscribers", json=registration, auth=self.get_service_auth()
        )
        assert response.status_code == 201, response.text
        record: dict[str, Any] = response.json()["subscriber"]
        if money.parse(balance, record["currency"], allow_zero=True):
            await self.deposit(record["id"], balance)
            record["balance"] = money.format_decimal(
                money.parse(balance, record["currency"]), record["currency"]
            )
        return record

    async def create_subscriber_with_old_name(
        self, first_name: str, last_name: str = "Kamara", **fields: Any
    ) -> dict[str, Any]:
        """Create a subscriber with a name that only earlier releases accepted."""
        record = await self.create_subscriber(**fields)
        await self.database.execute(
            """WITH renamed AS (
                   UPDATE subscribers SET first_name = $2, last_name = $3 WHERE id = $1
                   RETURNING account_id)
               UPDATE accounts SET holder_name = $2 || ' ' || $3,
                                   public_name = $2 || ' ' || left($3, 1) || '.'
               WHERE id = (SELECT account_id FROM renamed)""",
            ids.decode(ids.SUBSCRIBER, record["id"]),
            first_name,
            last_name,
        )
        return record | {"first_name": first_name, "last_name": last_name}

    async def create_restricted_subscriber(self, **fields: Any) -> dict[str, Any]:
        record = await self.create_subscriber(**fields)
        response = await self.put(
            f"/api/v1/subscribers/{record['id']}",
            json={"restricted": True},
            auth=await self.create_admin("C"),
        )
        assert response.status_code == 200, response.text
        # Without a one-time code, only services get the full record.
        response = await self.get(
            f"/api/v1/subscribers/{record['id']}", auth=self.get_service_auth()
        )
        restricted: dict[str, Any] = response.json()
        return restricted

    async def create_card(self, subscriber_id: str, **fields: Any) -> str:
        """Insert a card, active unless `fields` set another status, and return its serial."""
        number, card_id = next(_sequence), self.services.new_id()
        holder = ids.decode(ids.SUBSCRIBER, subscriber_id) or 0
        columns = {
            "id": card_id,
            "serial": f"TAP-{number:06d}",
            "uid": number.to_bytes(7).hex(":").upper().replace("00", "04", 1),
            "type": "PARENT",
            "status": "ACTIVE",
            "subscriber_id": holder,
            "account_id": await self.database.fetchval(
                "SELECT account_id FROM subscribers WHERE id = $1", holder
            ),
            "pin_holder_id": holder,
            "linked_at": self.services.clock(),
            "created_at": self.services.clock(),
            "updated_at": self.services.clock(),
            **fields,
        }
        await insert_row(self.database, "cards", **columns)
        return str(columns["serial"])

    async def deposit(self, subscriber_id: str, amount: str) -> None:
        """Deposit cash through the ledger."""
        outcome = await self.services.ledger.submit(
            Command(
                type=chart.TRANSFER,
                channel="admin",
                payer=commands.CASH_PARTY,
                payee=commands.subscriber_party(ids.decode(ids.SUBSCRIBER, subscriber_id) or 0),
                amount=money.parse(amount, self.services.settings.currency),
            )
        )
        outcome.require_accepted()

    async def disable_compliance_rules(self) -> None:
        """Disable all rules, for tests whose payments would exceed their thresholds."""
        async with self.services.transaction() as tx:
            await tx.execute("UPDATE compliance_rules SET status = 'inactive'")
            await self.services.signals.publish_and_wait(tx, ledger_rules.RULES_CHANGED)

    async def get_pending_code(self, phone_number: str) -> str:
        """Return the newest one-time code pending for a phone number."""
        (code,), *_ = await self.list_pending_messages(phone_number, "one_time_code")
        return code

    async def list_pending_messages(self, phone_number: str, template: str) -> list[list[str]]:
        """Return the parameters in a phone's pending messages with a template, newest first."""
        pending = await list_pending(self.database, self.services.vault, phone_number)
        return [message.parameters for message in pending if message.template == template]

    def advance_clock(self, **time: float) -> None:
        """Advance the clock for later requests. Credentials still use the original clock."""
        clock = self.services.clock
        self.services.clock = lambda: clock() + timedelta(**time)

    def allow_weak_pins(self, allowed: bool = True) -> None:
        """Accept or reject weak PINs for the rest of this test."""
        self.services.pin_verifier = PinVerifier(
            self.services.vault,
            refuse_weak=not allowed,
            wrong_pin_limit=self.services.pin_verifier.wrong_pin_limit,
        )

    async def list_audit_entries(self, resource_id: str, event: str) -> list[dict[str, Any]]:
        """Return the audit entries for an event on one resource, oldest first."""
        rows = await self.database.fetch(
            """SELECT actor, result, reason, changes FROM audit_entries
               WHERE resource_id = $1 AND event = $2 ORDER BY id""",
            resource_id,
            event,
        )
        return [dict(row) for row in rows]


def parse_error(response: httpx2.Response) -> tuple[int, str]:
    """Return an error response's status and code."""
    return response.status_code, response.json()["code"]


SERVICE_SECRETS: Final = {"messenger": "mZ4vXq81TgYw0LrKc5uE", "gateway": "p9RfWn36HsBd7QjXe2Ut"}
PRODUCTION_ENVIRON: Final = {
    "TAPGATE_ENVIRONMENT": "production",
    "TAPGATE_PUBLIC_URL": "https://pay.example.com",
    "TAPGATE_JWT_SECRET": "k3V8qZr1XwT6yLmN0pBcD5fGhJ2sQa7u",
    "TAPGATE_SECRET_KEY": "Yt9bW4xKcR7vN2mHs6LpZ1qEjU8dFg3a",
    "TAPGATE_SERVICE_SECRETS": (
        '{"messenger": "mZ4vXq81TgYw0LrKc5uE", "gateway": "p9RfWn36HsBd7QjXe2Ut"}'
    ),
    "TAPGATE_MESSENGER_VERIFY_TOKEN": "verify me",
}
