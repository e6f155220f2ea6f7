"""Users and API keys of a merchant, a partner and an agent, with records of their own."""

from collections.abc import Mapping
from typing import Any, Final

from drivers.actors import (
    PASSWORD,
    Admin,
    Agent,
    ApiCaller,
    Customer,
    Record,
    new_phone_number,
    new_request_id,
    require_success,
)
from fuzz.callers import Caller
from harness import PIN, BearerAuth
from tapgate.http.api.owner_access import OWNER_ROLES_BY_LETTER
from tapgate_client.schemas.admin import Scope

#: Last name of all customers. Owners see only its first letter.
FAMILY: Final = "Zqcanary"
_LIMITED_ROLES: Final = {"processor": "MK", "partner": "P", "agent": "G"}


async def create_owner_callers(ada: Admin, customer: Customer) -> list[Caller]:
    """Create one owner of each kind with users of each role, an API key and own records."""
    callers = []
    for kind, create in _CREATORS.items():
        owner_id, own_ids = await create(ada, customer)
        own_ids |= await _create_finance_records(ada, kind, owner_id)
        values = {f"{kind}_id": owner_id, "owner_id": owner_id}
        auths = {
            OWNER_ROLES_BY_LETTER[letter]: await _create_user(ada, letter, owner_id)
            for letter in _LIMITED_ROLES[kind]
        }
        user = ApiCaller(ada.client, next(iter(auths.values())))
        asked = require_success(await user.post("support/owner-requests", text="When?"))
        own_ids["support/requests"] = str(asked["id"])
        auths[f"key of {kind}"] = await _create_key(ada, owner_id)
        callers += [Caller(name, auth, values, own_ids) for name, auth in auths.items()]
    return callers


async def _create_user(ada: Admin, letter: str, owner_id: str) -> BearerAuth:
    role = OWNER_ROLES_BY_LETTER[letter]
    email = f"{role}@owner.example.com"
    new = {"email": email, "name": "Musa", "role": role, "owner_id": owner_id}
    require_success(await ada.post("admin/users", password=PASSWORD, **new))
    user = await Admin.log_in(ada.client, email, PASSWORD)
    return BearerAuth(user.token, user.id)


async def _create_key(ada: Admin, owner_id: str) -> BearerAuth:
    new = {"name": "Own", "scopes": list(Scope), "owner_id": owner_id}
    created = require_success(await ada.post("admin/api-keys", **new))
    return BearerAuth(created["key"], created["id"])


async def _create_shop(ada: Admin, customer: Customer) -> tuple[str, dict[str, str]]:
    shop = await ada.create_merchant("Own shop")
    paid = require_success(await shop.server.pay("90", customer.card, PIN))
    dispute = await ada.post(
        "disputes",
        transaction_id=paid["transaction_id"],
        reason="other",
        request_id=new_request_id(),
    )
    return shop.id, {
        "processors": shop.id,
        "transactions": paid["transaction_id"],
        "disputes": require_success(dispute)["id"],
    }


async def _create_bank(ada: Admin, customer: Customer) -> tuple[str, dict[str, str]]:
    bank = await ada.create_partner("Own bank")
    await ada.fund_partner(bank, "9000")
    funded = require_success(await bank.top_up("20", customer, "own-1"))
    return bank.id, {"admin/partners": bank.id, "transactions": funded["transaction_id"]}


async def _create_agent(ada: Admin, customer: Customer) -> tuple[str, dict[str, str]]:
    created = await ada.post(
        "agents",
        agent_type="super_agent",
        name="Own agent",
        phone_number=new_phone_number(),
        pin=PIN,
    )
    agent = Agent(customer.app, require_success(created)["agent"])
    agent.pin = PIN
    await ada.fund_agent(agent, "9000")
    credited = require_success(await agent.cash_in("20", customer))
    asked = require_success(await ada.post(f"agents/{agent.id}/float-requests", amount="5"))
    return agent.id, {
        "agents": agent.id,
        "transactions": credited["transaction_id"],
        "float-requests": asked["id"],
    }


_CREATORS: Final[Mapping[str, Any]] = {
    "processor": _create_shop,
    "partner": _create_bank,
    "agent": _create_agent,
}


async def _create_finance_records(ada: Admin, kind: str, owner_id: str) -> dict[str, str]:
    account: Record = require_success(
        await ada.post(
            "bank-accounts",
            owner_id=owner_id,
            holder_name="Own holder",
            bank_code="SLCBSLFR",
            number=f"77{len(kind):06d}",
        )
    )
    found = {"bank-accounts": str(account["id"])}
    if kind != "agent":
        hook = {"url": "https://own.example/hook", "events": ["payout.paid"], "owner_id": owner_id}
        created = require_success(await ada.post("admin/webhook-endpoints", **hook))
        found["admin/webhook-endpoints"] = str(created["id"])
    return found
