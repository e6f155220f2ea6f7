"""For every operation that looks at whose a thing is: how one asks for somebody else's."""

from collections.abc import Callable
from typing import Any, NamedTuple

from agents.stage import AGENT_PIN, new_agent, new_sub_agent
from gateway.house import House, terminal_key
from partners.stage import created as new_partner
from partners.stage import signed
from tapgate import ids
from world import PIN, RequestSignature, World

V1 = "/api/v1"
OTHER_PIN = "5182"
NEW_PIN = "6273"
PICTURE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptV"
    "AAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)
PERIOD = {"from_date": "2026-01-01", "to_date": "2026-01-31"}

_requests = iter(range(1, 10**6))


class Ask(NamedTuple):
    method: str
    path: str
    body: Any = None


class Person:
    """A subscriber with all that one can have."""

    def __init__(self, record: dict[str, Any], pin: str) -> None:
        self.record = record
        self.id: str = record["id"]
        self.account: str = record["account_id"]
        self.phone: str = record["phone_number"]
        self.pin = pin
        self.card = self.blocked_card = self.transaction = self.document = ""


class Town:
    """Two of everybody: what belongs to one is tried by the other."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.world: World = house.world
        self.client = house.client
        self.shop = self.other_shop = RequestSignature("", "")
        self.shop_id = self.other_shop_id = self.other_terminal = self.other_key = ""
        self.bank: dict[str, Any] = {}
        self.other_bank: dict[str, Any] = {}
        self.agents: list[dict[str, Any]] = []
        self.sub_agents: list[dict[str, Any]] = []
        self.hooks: list[str] = []
        self.delivery = ""
        self.somebody = self.somebody_else = Person.__new__(Person)

    async def found(self) -> None:
        world = self.world
        await world.without_compliance_rules()
        self.shop, self.other_shop = await world.processor(), await world.processor()
        self.shop_id = await world.processor_of(self.shop)
        self.other_shop_id = await world.processor_of(self.other_shop)
        self.other_key = (await terminal_key(world, self.other_shop)).id
        admin = await world.admin()
        url = f"{V1}/processors/{self.other_shop_id}/terminals"
        (terminal,) = (await self.client.get(url, auth=admin)).json()["data"]
        self.other_terminal = terminal["id"]
        self.bank = await new_partner(world, balance="5000")
        self.other_bank = await new_partner(world, balance="5000")
        self.agents = [await new_agent(world, balance="1000") for _ in range(2)]
        self.sub_agents = [await new_sub_agent(world, agent) for agent in self.agents]
        for _ in range(2):
            hook = {"url": "http://127.0.0.1:9/", "events": ["card.blocked"]}
            made = await self.client.post(f"{V1}/admin/webhook-endpoints", json=hook, auth=admin)
            self.hooks.append(made.json()["id"])
        self.somebody = await self.person()
        self.somebody_else = await self.person(pin=OTHER_PIN)
        url = f"{V1}/admin/webhook-endpoints/{self.hooks[1]}/deliveries"
        self.delivery = (await self.client.get(url, auth=admin)).json()["data"][0]["id"]

    @property
    def partner(self) -> RequestSignature:
        return signed(self.bank)

    async def person(self, *, restricted: bool = False, pin: str = PIN) -> Person:
        world = self.world
        found = Person(await world.subscriber(balance="1000", pin=pin), pin)
        found.card = await world.card(found.id)
        found.blocked_card = await world.card(found.id)
        paid = await self.client.post(
            f"{V1}/pos/payment",
            json={"request_id": request_id(), "card_serial": found.card, "amount": "10"},
            auth=self.shop,
        )
        found.transaction = paid.json()["transaction_id"]
        body = {"document_type": "selfie", "image": PICTURE}
        url = f"{V1}/subscribers/{found.id}"
        sent = await self.client.post(f"{url}/kyc-documents", json=body, auth=world.service())
        found.document = sent.json()["document_id"]
        for_now = {"reason": "customer_request"}
        blocked = await self.client.post(
            f"{V1}/cards/{found.blocked_card}/block", json=for_now, auth=world.service()
        )
        assert blocked.status_code == 200, blocked.text
        if restricted:
            admin = await world.admin("C")
            done = await self.client.put(url, json={"restricted": True}, auth=admin)
            assert done.status_code == 200, done.text
        return found

    async def free_card(self) -> str:
        """Nobody's yet."""
        services, serial = self.world.services, f"FREE-{next(_requests)}"
        await services.database.execute(
            """INSERT INTO cards (id, serial, status, created_at, updated_at)
               VALUES ($1, $2, 'UNASSIGNED', now(), now())""",
            services.new_id(),
            serial,
        )
        return serial


def request_id() -> str:
    return f"stranger-{next(_requests)}"


def missing(prefix: str) -> str:
    """An identifier of the right form that nobody ever had."""
    return ids.encode(prefix, 2**60)


# How one asks about a subscriber. A list leaves out, all others refuse.
About = Callable[[Town, Person, str], Ask]
LISTS: dict[str, Callable[[Town, Person], list[str]]] = {
    f"GET {V1}/subscribers": lambda t, p: [
        f"{V1}/subscribers",
        f"{V1}/subscribers?phone_number=%2B{p.phone[1:]}",
        f"{V1}/subscribers?search={p.phone[-6:]}",
    ],
    f"GET {V1}/cards": lambda t, p: [
        f"{V1}/cards",
        f"{V1}/cards?subscriber_id={p.id}",
        f"{V1}/cards?search={p.card}",
    ],
}

# Lists of transactions have those of a restricted subscriber for admins, masked.
MASKED_LISTS: dict[str, Callable[[Town, Person], list[str]]] = {
    f"GET {V1}/transactions": lambda t, p: [
        f"{V1}/transactions",
        f"{V1}/transactions?user_id={t.shop_id}",
    ],
    f"GET {V1}/transactions/export": lambda t, p: [
        f"{V1}/transactions/export",
        f"{V1}/transactions/export?user_id={t.shop_id}",
    ],
    f"GET {V1}/processors/{{id}}/transactions": lambda t, p: [
        f"{V1}/processors/{t.shop_id}/transactions"
    ],
}

SUBSCRIBER = f"{V1}/subscribers/{{id}}"


def _of(method: str, path: str, body: Any = None) -> About:
    return lambda t, p, card: Ask(method, f"{V1}/subscribers/{p.id}{path}", body)


def _post(path: str, body: Callable[[Town, Person, str], Any]) -> About:
    return lambda t, p, card: Ask("POST", f"{V1}{path}", body(t, p, card))


def _transaction(part: str) -> About:
    return lambda t, p, card: Ask("GET", f"{V1}/transactions/{p.transaction}{part}")


CLOSED: dict[str, About] = {
    f"GET {SUBSCRIBER}": _of("GET", ""),
    f"GET {SUBSCRIBER}/limits": _of("GET", "/limits"),
    f"PUT {SUBSCRIBER}": _of("PUT", "", {"first_name": "Eve"}),
    f"POST {SUBSCRIBER}/unblock": _of("POST", "/unblock", {}),
    f"POST {SUBSCRIBER}/close": _of("POST", "/close", {"reason": "asked"}),
    f"POST {SUBSCRIBER}/verify-pin": _of("POST", "/verify-pin", {"pin": PIN}),
    f"POST {SUBSCRIBER}/change-pin": _of(
        "POST", "/change-pin", {"old_pin": PIN, "new_pin": NEW_PIN}
    ),
    f"POST {SUBSCRIBER}/reset-pin": _of("POST", "/reset-pin"),
    f"POST {SUBSCRIBER}/reset-pin/confirm": _of(
        "POST", "/reset-pin/confirm", {"otp": "000000", "new_pin": NEW_PIN}
    ),
    f"POST {SUBSCRIBER}/kyc-documents": _of(
        "POST", "/kyc-documents", {"document_type": "id_front", "image": PICTURE}
    ),
    f"GET {SUBSCRIBER}/kyc-documents": _of("GET", "/kyc-documents"),
    f"GET {SUBSCRIBER}/kyc-documents/{{document_id}}": lambda t, p, card: Ask(
        "GET", f"{V1}/subscribers/{p.id}/kyc-documents/{p.document}"
    ),
    f"POST {V1}/cards/link": _post(
        "/cards/link",
        lambda t, p, card: {"subscriber_id": p.id, "card_serial": card, "pin": PIN},
    ),
    f"POST {V1}/cards/child": _post(
        "/cards/child",
        lambda t, p, card: {
            "parent_subscriber_id": p.id,
            "card_serial": card,
            "parent_pin": PIN,
            "child_pin": NEW_PIN,
            "daily_limit": "5",
            "child_name": "Sia",
        },
    ),
    f"GET {V1}/cards/{{serial}}": lambda t, p, card: Ask("GET", f"{V1}/cards/{p.card}"),
    f"POST {V1}/cards/{{serial}}/unblock": lambda t, p, card: Ask(
        "POST", f"{V1}/cards/{p.blocked_card}/unblock", {}
    ),
    f"POST {V1}/wallet/transfer": _post(
        "/wallet/transfer",
        lambda t, p, card: {
            "from_account_id": t.somebody.account,
            "to_account_id": p.account,
            "amount": "1",
            "pin": PIN,
        },
    ),
    f"POST {V1}/processors/{{id}}/transfer": lambda t, p, card: Ask(
        "POST",
        f"{V1}/processors/{t.shop_id}/transfer",
        {"subscriber_id": p.id, "amount": "1"},
    ),
    f"POST {V1}/wallet/fund-from-partner": _post(
        "/wallet/fund-from-partner",
        lambda t, p, card: {
            "partner_id": t.bank["partner"]["id"],
            "card_serial": p.card,
            "partner_reference": request_id(),
            "amount": "1",
        },
    ),
    f"POST {V1}/agents/cashin": _post(
        "/agents/cashin",
        lambda t, p, card: {
            "agent_id": t.agents[1]["id"],
            "subscriber_id": p.id,
            "amount": "1",
            "agent_pin": AGENT_PIN,
        },
    ),
    f"POST {V1}/wallet/quote": _post(
        "/wallet/quote",
        lambda t, p, card: {"type": "transfer_p2p", "amount": "1", "sender_id": p.id},
    ),
    f"GET {V1}/balance/{{user_id}}": lambda t, p, card: Ask("GET", f"{V1}/balance/{p.id}"),
    f"POST {V1}/wallet/account-statement": _post(
        "/wallet/account-statement", lambda t, p, card: {"subscriber_id": p.id, **PERIOD}
    ),
    f"POST {V1}/compliance/check": _post(
        "/compliance/check",
        lambda t, p, card: {
            "subscriber_id": p.id,
            "amount": "1",
            "transaction_type": "transfer_p2p",
        },
    ),
}

# Closed to API keys, masked for admins.
MASKED: dict[str, About] = {
    f"GET {V1}/transactions/{{id}}{part}": _transaction(part) for part in ("", "/entries", "/chain")
}

# How one asks in the name of somebody whose PIN one does not know.
PINS: dict[str, Callable[[Town, Person, str, str], Ask]] = {
    f"POST {SUBSCRIBER}/verify-pin": lambda t, p, card, pin: Ask(
        "POST", f"{V1}/subscribers/{p.id}/verify-pin", {"pin": pin}
    ),
    f"POST {SUBSCRIBER}/change-pin": lambda t, p, card, pin: Ask(
        "POST", f"{V1}/subscribers/{p.id}/change-pin", {"old_pin": pin, "new_pin": NEW_PIN}
    ),
    f"POST {V1}/cards/link": lambda t, p, card, pin: Ask(
        "POST", f"{V1}/cards/link", {"subscriber_id": p.id, "card_serial": card, "pin": pin}
    ),
    f"POST {V1}/cards/child": lambda t, p, card, pin: Ask(
        "POST",
        f"{V1}/cards/child",
        {
            "parent_subscriber_id": p.id,
            "card_serial": card,
            "parent_pin": pin,
            "child_pin": NEW_PIN,
            "daily_limit": "5",
            "child_name": "Sia",
        },
    ),
    f"POST {V1}/wallet/transfer-p2p": lambda t, p, card, pin: Ask(
        "POST",
        f"{V1}/wallet/transfer-p2p",
        {
            "sender_id": p.id,
            "recipient_card_serial": t.somebody_else.card,
            "amount": "1",
            "pin": pin,
        },
    ),
    f"POST {V1}/wallet/transfer": lambda t, p, card, pin: Ask(
        "POST",
        f"{V1}/wallet/transfer",
        {
            "from_account_id": p.account,
            "to_account_id": t.somebody_else.account,
            "amount": "1",
            "pin": pin,
        },
    ),
    f"POST {V1}/pos/payment": lambda t, p, card, pin: Ask(
        "POST",
        f"{V1}/pos/payment",
        {"request_id": request_id(), "card_serial": p.card, "amount": "1", "pin": pin},
    ),
    f"POST {V1}/pos/verify-card": lambda t, p, card, pin: Ask(
        "POST", f"{V1}/pos/verify-card", {"card_serial": p.card, "pin": pin}
    ),
    f"POST {V1}/wallet/account-statement": lambda t, p, card, pin: Ask(
        "POST", f"{V1}/wallet/account-statement", {"subscriber_id": p.id, "pin": pin, **PERIOD}
    ),
    f"POST {V1}/agents/{{id}}/change-pin": lambda t, p, card, pin: Ask(
        "POST",
        f"{V1}/agents/{t.agents[0]['id']}/change-pin",
        {"old_pin": pin, "new_pin": NEW_PIN},
    ),
    f"POST {V1}/agents/cashin": lambda t, p, card, pin: Ask(
        "POST",
        f"{V1}/agents/cashin",
        {"agent_id": t.agents[1]["id"], "subscriber_id": p.id, "amount": "1", "agent_pin": pin},
    ),
    f"POST {V1}/agents/cashout": lambda t, p, card, pin: Ask(
        "POST",
        f"{V1}/agents/cashout",
        {
            "agent_id": t.agents[1]["id"],
            "subscriber_id": p.id,
            "amount": "1",
            "agent_pin": AGENT_PIN,
            "pin": pin,
        },
    ),
    f"POST {V1}/agents/transfer": lambda t, p, card, pin: Ask(
        "POST",
        f"{V1}/agents/transfer",
        {
            "from_agent_id": t.agents[1]["id"],
            "to_agent_id": t.sub_agents[1]["id"],
            "amount": "1",
            "pin": pin,
        },
    ),
}

# One's own path with another's thing in it, and the same with one that does not exist.
Both = Callable[[Town], tuple[Ask, Ask]]


def _both(make: Callable[[Town, str], Ask], foreign: Callable[[Town], str], prefix: str) -> Both:
    return lambda t: (make(t, foreign(t)), make(t, missing(prefix)))


def _terminal(verb: str) -> Both:
    return _both(
        lambda t, it: Ask("POST", f"{V1}/processors/{t.shop_id}/terminals/{it}/{verb}", {}),
        lambda t: t.other_terminal,
        ids.TERMINAL,
    )


INSIDE: dict[str, Both] = {
    f"POST {V1}/processors/{{id}}/terminals/{{terminal_id}}/block": _terminal("block"),
    f"POST {V1}/processors/{{id}}/terminals/{{terminal_id}}/unblock": _terminal("unblock"),
    f"POST {V1}/processors/{{id}}/keys": _both(
        lambda t, it: Ask("POST", f"{V1}/processors/{t.shop_id}/keys", {"terminal_id": it}),
        lambda t: t.other_terminal,
        ids.TERMINAL,
    ),
    f"DELETE {V1}/processors/{{id}}/keys/{{api_key_id}}": _both(
        lambda t, it: Ask("DELETE", f"{V1}/processors/{t.shop_id}/keys/{it}"),
        lambda t: t.other_key,
        ids.KEY,
    ),
    f"DELETE {V1}/admin/partners/{{id}}/keys/{{api_key_id}}": _both(
        lambda t, it: Ask("DELETE", f"{V1}/admin/partners/{t.bank['partner']['id']}/keys/{it}"),
        lambda t: t.other_bank["api_key_id"],
        ids.KEY,
    ),
    f"GET {SUBSCRIBER}/kyc-documents/{{document_id}}": _both(
        lambda t, it: Ask("GET", f"{V1}/subscribers/{t.somebody.id}/kyc-documents/{it}"),
        lambda t: t.somebody_else.document,
        ids.DOCUMENT,
    ),
    f"POST {V1}/admin/webhook-endpoints/{{id}}/deliveries/{{delivery_id}}/redeliver": _both(
        lambda t, it: Ask(
            "POST", f"{V1}/admin/webhook-endpoints/{t.hooks[0]}/deliveries/{it}/redeliver"
        ),
        lambda t: t.delivery,
        ids.DELIVERY,
    ),
}


def _refund(path: str) -> Both:
    """By the other shop, to which nothing of this was paid."""
    return _both(
        lambda t, it: Ask(
            "POST",
            path,
            {"request_id": request_id(), "original_transaction_id": it, "reason": "returned"},
        ),
        lambda t: t.somebody.transaction,
        ids.TRANSACTION,
    )


PROCESSORS: dict[str, Both] = {
    f"POST {V1}/pos/refund": _refund(f"{V1}/pos/refund"),
    f"POST {V1}/payment/refund": _refund(f"{V1}/payment/refund"),
    "POST /payment/refund": _refund("/payment/refund"),
    f"POST {V1}/pos/payment": _both(
        lambda t, it: Ask(
            "POST",
            f"{V1}/pos/payment",
            {
                "request_id": request_id(),
                "card_serial": t.somebody.card,
                "amount": "1",
                "terminal_id": it,
            },
        ),
        lambda t: t.other_terminal,
        ids.TERMINAL,
    ),
}
