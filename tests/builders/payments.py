"""Payments over HTTP, transactions submitted to the ledger, and their compliance reviews."""

import asyncio
import itertools
from typing import Any

import httpx2

from harness import PIN, Harness, HmacAuth
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command, Outcome, Party, ReviewDecision, TransactionResult
from tapgate.ledger.pins.pin_storage import set_pin
from tapgate_client import ids, money

PAY_URL = "/api/v1/pos/payment"
REFUND_URL = "/api/v1/pos/refund"
VERIFY_URL = "/api/v1/pos/verify-card"
LOOKUP_URL = "/api/v1/pos/lookup-card"

_sequence = itertools.count(1)
PartyLike = Party | dict[str, Any] | str


def new_request_id() -> str:
    return f"request-{next(_sequence)}"


class PosDriver:
    """A merchant with its signing key, and a customer with a card."""

    def __init__(self, harness: Harness, merchant_auth: HmacAuth, customer: dict[str, Any]) -> None:
        self.harness = harness
        self.merchant_auth = merchant_auth
        self.customer = customer
        self.card = ""

    @classmethod
    async def create(cls, harness: Harness, *, balance: str = "1000", **card: Any) -> "PosDriver":
        customer = await harness.create_subscriber(balance=balance)
        pos = cls(harness, await harness.create_processor(), customer)
        pos.card = await harness.create_card(customer["id"], **card)
        return pos

    async def pay(
        self, amount: str = "100.00", *, url: str = PAY_URL, auth: Any = None, **fields: Any
    ) -> httpx2.Response:
        body = {
            "request_id": new_request_id(),
            "card_serial": self.card,
            "amount": amount,
            **fields,
        }
        return await self.harness.post(url, json=body, auth=auth or self.merchant_auth)

    async def refund(
        self,
        transaction_id: str,
        amount: str | None = None,
        *,
        url: str = REFUND_URL,
        **fields: Any,
    ) -> httpx2.Response:
        body = {
            "request_id": new_request_id(),
            "original_transaction_id": transaction_id,
            "amount": amount,
            "reason": "returned goods",
            **fields,
        }
        return await self.harness.post(url, json=body, auth=fields.pop("auth", self.merchant_auth))

    async def get_balance(self) -> int:
        """Return the customer's balance in minor units."""
        balance: int = await self.harness.database.fetchval(
            """SELECT balance FROM accounts a JOIN subscribers s ON s.account_id = a.id
               WHERE s.id = $1""",
            ids.decode(ids.SUBSCRIBER, self.customer["id"]),
        )
        return balance

    async def create_terminal(self, status: str = "active") -> str:
        """Create a terminal for this merchant and return its ID."""
        services, terminal_id = self.harness.services, self.harness.services.new_id()
        await services.database.execute(
            """INSERT INTO terminals (id, processor_id, name, status, created_at)
               SELECT $1, processor_id, 'Till', $2, now() FROM hmac_keys WHERE id = $3""",
            terminal_id,
            status,
            ids.decode(ids.KEY, self.merchant_auth.id),
        )
        return ids.encode(ids.TERMINAL, terminal_id)


_sequence = itertools.count(1)


async def create_agent(harness: Harness, name: str = "Kadiatu Conteh") -> str:
    """Create an agent whose PIN is `PIN` and return its ID."""
    services, agent_id = harness.services, harness.services.new_id()
    accounts = {}
    async with services.transaction() as tx:
        for kind in (chart.FLOAT, chart.COMMISSION):
            accounts[kind] = await harness.create_account(
                tx, kind, agent_id, name, _build_public_name(name)
            )
        await tx.execute(
            """INSERT INTO agents (id, account_id, commission_account_id, agent_type, phone_number,
                                   created_at, updated_at)
               VALUES ($1, $2, $3, 'super_agent', $4, now(), now())""",
            agent_id,
            accounts[chart.FLOAT],
            accounts[chart.COMMISSION],
            f"+2328{next(_sequence):07d}",
        )
        await set_pin(tx, agent_id, services.pin_verifier.hash(PIN))
    return ids.encode(ids.AGENT, agent_id)


async def create_processor(harness: Harness, name: str = "Kamara Stores") -> str:
    """Create a processor and return its ID."""
    key = await harness.create_processor(name, _build_public_name(name))
    return await harness.get_processor_id(key)


async def create_partner(harness: Harness, name: str = "Sierra Bank") -> str:
    """Create a partner and return its ID."""
    return str((await harness.create_partner(name, _build_public_name(name))).partner_id)


def _build_public_name(name: str) -> str:
    return f"{name.split(' ', maxsplit=1)[0]} Public"


def build_party(party: PartyLike) -> Party:
    """Build a party from a record, a user ID, "cash" or a card serial."""
    if isinstance(party, Party):
        return party
    public_id: str = party if isinstance(party, str) else party["id"]
    for prefix, build in (
        (ids.SUBSCRIBER, commands.subscriber_party),
        (ids.AGENT, commands.agent_party),
        (ids.PROCESSOR, commands.processor_party),
        (ids.PARTNER, commands.partner_party),
    ):
        internal_id = ids.decode(prefix, public_id)
        if internal_id is not None:
            return build(internal_id)
    return commands.CASH_PARTY if public_id == "cash" else commands.card_party(public_id)


async def submit_command(
    harness: Harness, kind: str, payer: PartyLike, payee: PartyLike, amount: str, **fields: Any
) -> Outcome:
    """Submit a command to the ledger directly."""
    return await harness.services.ledger.submit(
        Command(
            type=kind,
            channel=fields.pop("channel", "api"),
            payer=build_party(payer),
            payee=build_party(payee),
            amount=money.parse(amount, harness.services.settings.currency),
            **fields,
        )
    )


async def submit_and_get_id(
    harness: Harness, kind: str, payer: PartyLike, payee: PartyLike, amount: str, **fields: Any
) -> str:
    """Submit a command, require that it is accepted, and return the transaction ID."""
    return encode_transaction_id(
        (await submit_command(harness, kind, payer, payee, amount, **fields)).require_accepted()
    )


async def submit_refund(
    harness: Harness, transaction_id: str, processor_id: str, amount: str
) -> str:
    return await submit_and_get_id(
        harness,
        chart.REFUND,
        processor_id,
        processor_id,  # ignored: the refund goes to the original payer
        amount,
        original_id=ids.decode(ids.TRANSACTION, transaction_id),
    )


async def decide_review(harness: Harness, transaction_id: str, *, release: bool) -> None:
    internal_id = ids.decode(ids.TRANSACTION, transaction_id)
    assert internal_id is not None
    decision = ReviewDecision(transaction_id=internal_id, release=release)
    await harness.services.ledger.submit(decision)


async def set_kyc_level(harness: Harness, subscriber_id: str, level: int) -> None:
    await harness.database.execute(
        "UPDATE accounts SET kyc_level = $2 WHERE owner_id = $1",
        ids.decode(ids.SUBSCRIBER, subscriber_id),
        level,
    )


def encode_transaction_id(result: TransactionResult) -> str:
    return ids.encode(ids.TRANSACTION, result.transaction_id)


RULES_URL = "/api/v1/compliance/rules"
ALERTS_URL = "/api/v1/compliance/alerts"
RESOLUTION = {"status": "resolved", "resolution_notes": "Talked to the customer"}


def decode_id(public_id: str) -> int:
    return ids.decode(public_id[:4], public_id) or 0


async def get_rules_by_name(harness: Harness) -> dict[str, dict[str, Any]]:
    """Return all rules keyed by name."""
    response = await harness.get(RULES_URL, auth=await harness.create_admin("C"))
    assert response.status_code == 200, response.text
    return {rule["name"]: rule for rule in response.json()["data"]}


async def update_rule(harness: Harness, name: str, **changes: Any) -> dict[str, Any]:
    rule_id = (await get_rules_by_name(harness))[name]["id"]
    response = await harness.put(
        f"{RULES_URL}/{rule_id}", json=changes, auth=await harness.create_admin("C")
    )
    assert response.status_code == 200, response.text
    record: dict[str, Any] = response.json()
    return record


async def list_alerts(harness: Harness, **filters: str) -> list[dict[str, Any]]:
    """Return the matching alerts, newest first."""
    response = await harness.get(ALERTS_URL, params=filters, auth=await harness.create_admin("C"))
    assert response.status_code == 200, response.text
    alerts: list[dict[str, Any]] = response.json()["data"]
    return alerts


async def resolve_alert(harness: Harness, alert_id: str, **fields: Any) -> httpx2.Response:
    return await harness.post(
        f"{ALERTS_URL}/{alert_id}/resolve",
        json=RESOLUTION | fields,
        auth=await harness.create_admin("C"),
    )


def build_transfer(sender: str, receiver: str, amount: str) -> Command:
    return Command(
        type=chart.TRANSFER,
        channel="admin",
        payer=build_party(sender),
        payee=build_party(receiver),
        amount=money.parse(amount, "SLE"),
    )


async def submit_transfer(harness: Harness, sender: str, receiver: str, amount: str) -> Outcome:
    return await harness.services.ledger.submit(build_transfer(sender, receiver, amount))


async def create_held_transfer(
    harness: Harness, amount: str = "100.01"
) -> tuple[dict[str, Any], str, str]:
    """Create a transfer held for review and return its alert, sender ID and receiver ID."""
    await update_rule(harness, "Large amount", threshold="100")
    sender, receiver = await asyncio.gather(
        harness.create_subscriber(balance="1000"), harness.create_subscriber()
    )
    outcome = await submit_transfer(harness, sender["id"], receiver["id"], amount)
    assert outcome.require_accepted().status == "under_review"
    (alert,) = await list_alerts(harness, subscriber_id=sender["id"])
    return alert, sender["id"], receiver["id"]


async def get_funds(harness: Harness, subscriber_id: str) -> tuple[int, int]:
    """Return the balance and the held amount in minor units."""
    row = await harness.database.fetchrow(
        "SELECT balance, held FROM accounts WHERE owner_id = $1 AND kind = 'wallet'",
        decode_id(subscriber_id),
    )
    assert row is not None
    return row["balance"], row["held"]


async def get_transaction_status(harness: Harness, public_id: str) -> tuple[str, str | None]:
    """Return the status and the failure code."""
    row = await harness.database.fetchrow(
        "SELECT status, failure_code FROM transactions WHERE id = $1", decode_id(public_id)
    )
    assert row is not None
    return row["status"], row["failure_code"]


async def subscribe_to_events(harness: Harness) -> None:
    """Create a webhook endpoint subscribed to all events."""
    await harness.database.execute(
        """INSERT INTO webhook_endpoints (id, url, events, secret, created_at)
           VALUES (1, 'https://example.com', '{*}', '', now())"""
    )


async def list_events(harness: Harness, event: str) -> list[Any]:
    rows = await harness.database.fetch(
        "SELECT data FROM events WHERE type = $1 AND data IS NOT NULL ORDER BY id", event
    )
    return [row["data"] for row in rows]
