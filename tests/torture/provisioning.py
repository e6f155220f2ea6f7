"""Provisions the participants, once, through the gateway's API."""

from collections.abc import Collection
from typing import Final

from drivers.actors import PASSWORD, Admin, App, require_success
from drivers.processes import ADMIN, open_client
from harness import BearerAuth, HmacAuth
from tapgate.ledger.card_proofs.issuer_keys import IssuerKeys
from tapgate.ledger.card_proofs.sun import diversify_file_read_key
from tapgate_client.clock import system_clock
from tapgate_sandbox.software_card import SoftwareCard
from torture import plan
from torture.client_ledger import PAYOUT_FEE
from torture.events import COMPLETED, REFUNDED
from torture.participants import HmacKey, Participants
from torture.staff_plan import NO_WORK, StaffWork

#: Opening balances in minor units.
OPENING_BALANCES: Final = {
    **dict.fromkeys(plan.FUNDED_CUSTOMERS, 200_000_00),
    **dict.fromkeys(plan.LOW_BALANCE_CUSTOMERS, 60_00),
    **dict.fromkeys(plan.UNFUNDED_CUSTOMERS, 5_00),
    plan.WRONG_PIN_CUSTOMER: 100_00,
    **dict.fromkeys(plan.MERCHANTS, 0),
    **dict.fromkeys(plan.AGENTS, 5_000_000_00),
    plan.BANK: 10_000_000_00,
}
CUSTOMERS: Final = (
    *plan.FUNDED_CUSTOMERS,
    *plan.LOW_BALANCE_CUSTOMERS,
    *plan.UNFUNDED_CUSTOMERS,
    plan.WRONG_PIN_CUSTOMER,
)
#: Provisioning transactions: a deposit, the floats, and one top-up per customer.
PROVISIONING_TRANSACTION_COUNT: Final = 1 + len(plan.AGENTS) + len(CUSTOMERS)
_KEYSET: Final = "Bureau"
_UNLIMITED_AMOUNT: Final = "9000000000.00"
_SCOPES: Final = (
    "payments:read",
    "payments:write",
    "balance:read",
    "subscribers:write",
    "cards:write",
)


async def provision(
    port: int, events_url: str, *, signing_cards: bool = True, work: StaffWork = NO_WORK
) -> Participants:
    """Create all participants with their opening balances and without limits.

    Afterwards, transaction events are sent to the URL. An earlier release has no cards that sign
    their taps. If the work includes fundings of agents, they then need an approval.
    """
    participants = Participants(first_day=system_clock().date())
    async with open_client(f"http://127.0.0.1:{port}") as client:
        ada = await Admin.log_in(client, ADMIN["email"], ADMIN["password"])
        await _lift_limits(ada)
        key = require_success(await ada.post("admin/api-keys", name="App", scopes=_SCOPES))
        participants.api_key = key["key"]
        app = App(client, BearerAuth(key["key"], key["id"]), key["id"])
        await _create_merchants_and_agents(ada, app, participants)
        await _upload_cards(ada, participants, plan.SIGNING_CUSTOMERS if signing_cards else ())
        await _register_customers(ada, app, participants)
        events = {"url": events_url, "events": [COMPLETED, REFUNDED]}
        require_success(await ada.post("admin/webhook-endpoints", **events))
        if work != NO_WORK:
            maker = await ada.create_admin("Maker", "F")
            participants.maker_email = str(maker.email)
            participants.maker_token, participants.approver_token = maker.token, ada.token
            if work.payouts:
                await _create_bank_accounts(ada, maker, participants)
            if work.fundings:
                await _require_approvals(ada)
    return participants


async def log_in_staff(port: int, participants: Participants) -> None:
    """Log in again, because a session does not outlast a day."""
    async with open_client(f"http://127.0.0.1:{port}") as client:
        ada = await Admin.log_in(client, ADMIN["email"], ADMIN["password"])
        maker = await Admin.log_in(client, participants.maker_email, PASSWORD)
    participants.maker_token, participants.approver_token = maker.token, ada.token


async def _create_bank_accounts(ada: Admin, maker: Admin, participants: Participants) -> None:
    """Create a verified bank account of each payee and the platform, and a fee for payouts."""
    owners: list[dict[str, str]] = [{"owner_type": "platform"}]
    owners += [{"owner_id": participants.ids[name]} for name in (*plan.MERCHANTS, *plan.AGENTS)]
    for number, owner in enumerate(owners):
        account = {"holder_name": "Shop Ltd", "bank_code": "SLCBSLFR", "number": f"00{number:08d}"}
        created = await maker.post("bank-accounts", **owner, **account)
        assert created.status_code == 201, created.text
        require_success(await ada.post(f"bank-accounts/{created.json()['id']}/verify"))
    rules = require_success(await ada.get("fee-rules"))["data"]
    fee = {"type": "payout", "rate": f"{PAYOUT_FEE / 100:.2f}", "payer": "sender"}
    require_success(await ada.put("fee-rules", data=[*rules, fee]))


async def _require_approvals(ada: Admin) -> None:
    await ada.create_admin("Approver", "A")  # ada may fund agents too, and needs an approver
    rule = {
        "operation": "agent_fund",
        "roles": ["system_admin"],
        "approvers": 1,
        "expires_in": 86_400,
    }
    require_success(await ada.put("admin/approval-rules", data=[rule]))


async def _lift_limits(ada: Admin) -> None:
    for rule in require_success(await ada.get("compliance/rules"))["data"]:
        require_success(await ada.put(f"compliance/rules/{rule['id']}", status="inactive"))
    names = ("max_balance", "max_transaction", "daily_limit", "monthly_limit", "no_pin_limit")
    require_success(await ada.put("account-rules/1", **dict.fromkeys(names, _UNLIMITED_AMOUNT)))


async def _create_merchants_and_agents(ada: Admin, app: App, participants: Participants) -> None:
    """Create merchants with one terminal each, and agents with a float."""
    for name in plan.MERCHANTS:
        merchant = await ada.create_merchant(name)
        terminal, _ = await ada.create_terminal(merchant, "Till")
        participants.ids[name] = merchant.id
        participants.server_keys[name], participants.terminal_keys[name] = (
            _to_key(merchant.server.auth),
            _to_key(terminal.auth),
        )
    for name in plan.AGENTS:
        agent = await ada.create_agent(app, name)
        participants.ids[name] = agent.id
        await ada.fund_agent(agent, _format_amount(OPENING_BALANCES[name]))


async def _upload_cards(
    ada: Admin, participants: Participants, signing_customers: Collection[str]
) -> None:
    """Upload a card for each customer, and make the chips of those that sign their taps."""
    keys = IssuerKeys.create(None, None)
    if signing_customers:
        names = ("meta_read_key", "file_read_key")
        fields = {name: key.hex() for name, key in zip(names, keys, strict=True)}
        created = await ada.post("cards/keysets", name=_KEYSET, **fields)
        assert created.status_code == 201, created.text
    rows = ["Serial No.,MAC Address,Keyset"]
    for index, name in enumerate(CUSTOMERS):
        uid, serial = bytes([0x04, *index.to_bytes(6)]), f"TORTURE-{index:03d}"
        participants.cards[name] = serial
        keyset = ""
        if name in signing_customers:
            keyset = _KEYSET
            file_read_key = diversify_file_read_key(keys.file_read, uid, 1)
            participants.chips[name] = SoftwareCard(uid, keys.meta_read, file_read_key)
        rows.append(f"{serial},{uid.hex(':')},{keyset}")
    uploaded = require_success(await ada.upload_csv("\n".join(rows)))
    assert uploaded["created"] == len(CUSTOMERS), uploaded


async def _register_customers(ada: Admin, app: App, participants: Participants) -> None:
    """Register customers with a card and fund them from the bank."""
    created = require_success(await ada.post("admin/partners", name="Sierra Bank"))
    bank = participants.ids[plan.BANK] = created["partner"]["id"]
    participants.webhook_secret = created["webhook_secret"].encode()
    customer_total = sum(OPENING_BALANCES[name] for name in CUSTOMERS)
    deposit = _format_amount(OPENING_BALANCES[plan.BANK] + customer_total)
    require_success(await ada.post(f"admin/partners/{bank}/fund", amount=deposit))
    for name in CUSTOMERS:
        customer = await app.register_customer()
        await app.link_card(participants.cards[name], customer)
        participants.ids[name], participants.phones[name] = customer.id, customer.phone
        body = {"partner_id": bank, "subscriber_id": customer.id, "partner_reference": name}
        require_success(
            await app.post(
                "wallet/fund-from-partner", amount=_format_amount(OPENING_BALANCES[name]), **body
            )
        )


def _to_key(auth: object) -> HmacKey:
    assert isinstance(auth, HmacAuth)
    return HmacKey(id=auth.id, secret=auth.secret.encode())


def _format_amount(minor: int) -> str:
    return f"{minor // 100}.{minor % 100:02d}"
