"""Approval rules, held requests and decisions, over HTTP."""

from typing import Any

import httpx2

from builders.bank_statements import create_open_line
from builders.batches import create_validated
from builders.participants import create_agent, create_child_card
from builders.payments import create_held_transfer, submit_and_get_id
from builders.payouts import create_bank_account, create_merchant, create_paid_payout
from harness import BearerAuth, Harness, HmacAuth
from tapgate.http.api.access import ROLES_BY_LETTER
from tapgate.http.api.services import Services
from tapgate.http.endpoint import Endpoint
from tapgate.ledger import chart
from tapgate_client import ids

V1 = "/api/v1"
RULES_URL = f"{V1}/admin/approval-rules"
APPROVALS_URL = f"{V1}/approvals"


def build_rule(operation: str, **fields: Any) -> dict[str, Any]:
    return {
        "operation": operation,
        "roles": ["system_admin", "finance_user"],
        "approvers": 1,
        "expires_in": 3600,
        **fields,
    }


async def create_approvers(harness: Harness, *rules: dict[str, Any]) -> None:
    """Create enough admins for the approvals that rules require."""
    for role in {role for rule in rules for role in rule["roles"]}:
        letter = next(key for key, name in ROLES_BY_LETTER.items() if name == role)
        for _ in range(3):
            await harness.create_admin(letter)


async def set_rules(harness: Harness, *rules: dict[str, Any]) -> None:
    """Replace the rules, and create admins who can approve. No rules must exist."""
    await create_approvers(harness, *rules)
    response = await harness.put(RULES_URL, json={"data": rules}, auth=await harness.create_admin())
    assert response.status_code == 200, response.text


def require_held(response: httpx2.Response) -> dict[str, Any]:
    """Return the approval in the response to a held request."""
    assert response.status_code == 202, response.text
    approval: dict[str, Any] = response.json()["approval"]
    assert approval["status"] == "pending"
    return approval


async def decide(
    harness: Harness, approval: dict[str, Any], verb: str, auth: BearerAuth, **body: Any
) -> httpx2.Response:
    url = f"{APPROVALS_URL}/{approval['id']}/{verb}"
    return await harness.post(url, json=body or None, auth=auth)


async def approve(
    harness: Harness, approval: dict[str, Any], auth: BearerAuth | None = None
) -> dict[str, Any]:
    """Approve a request, as a new finance_user unless given, and return the approval."""
    approver = auth or await harness.create_admin("F")
    response = await decide(harness, approval, "approve", approver)
    assert response.status_code == 200, response.text
    return dict(response.json())


async def get_approval(
    harness: Harness, approval: dict[str, Any], auth: BearerAuth
) -> dict[str, Any]:
    response = await harness.get(f"{APPROVALS_URL}/{approval['id']}", auth=auth)
    assert response.status_code == 200, response.text
    return dict(response.json())


async def set_email(harness: Harness, admin: BearerAuth, email: str) -> None:
    await harness.database.execute(
        "UPDATE admins SET email = $2 WHERE id = $1", ids.decode(ids.ADMIN, admin.id), email
    )


async def get_email(harness: Harness, admin: BearerAuth) -> str:
    email: str = await harness.database.fetchval(
        "SELECT email FROM admins WHERE id = $1", ids.decode(ids.ADMIN, admin.id)
    )
    return email


def find_endpoint(services: Services, method: str, path: str) -> Endpoint:
    """Return the guarded endpoint of a request."""
    parts = f"/api/v1{path}".split("/")
    [found] = [
        endpoint
        for endpoint in services.guarded_endpoints.values()
        if endpoint.method == method
        and len(names := endpoint.path.split("/")) == len(parts)
        and all(name[:1] == "{" or name == part for name, part in zip(names, parts, strict=True))
    ]
    return found


class GuardedRecords:
    """One record of each kind, and the requests that change them."""

    def __init__(self, harness: Harness, maker: BearerAuth) -> None:
        self.harness, self.maker = harness, maker

    async def create_records(self) -> None:
        harness = self.harness
        self.agent = await create_agent(harness)
        self.customer = await harness.create_subscriber(balance="50")
        self.processor: HmacAuth = await harness.create_processor()
        self.partner: HmacAuth = await harness.create_partner()
        self.card = await harness.create_card(self.customer["id"])
        self.child_card, _ = await create_child_card(harness)
        self.keyset = (await self.send("POST", "/cards/keysets", {"name": "Cards"})).json()["id"]
        self.payment = await submit_and_get_id(
            harness,
            chart.POS_PAYMENT,
            self.card,
            await harness.get_processor_id(self.processor),
            "1",
        )
        await create_bank_account(harness, self.agent["id"])
        account = await create_bank_account(harness, self.partner.partner_id, verified=False)
        self.bank_account = account["id"]
        await create_bank_account(harness, None)
        merchant = await create_merchant(harness, "2")
        self.paid_payouts = [await create_paid_payout(harness, merchant) for _ in range(2)]
        self.returned_line = await create_open_line(harness, "1.00")
        self.batch = await create_validated(harness, self.customer)
        self.paying_key = await harness.create_api_key("payments:write")
        self.writing_key = await harness.create_api_key("subscribers:write")
        hook = {"url": "https://shop.example/hook", "events": ["alert.created"]}
        created = await self.send("POST", "/admin/webhook-endpoints", hook)
        self.webhook_endpoint = created.json()["id"]
        self.held_alert, _, _ = await create_held_transfer(harness)
        self.suspended = await self._create_suspended()
        sender, receiver = await harness.create_subscriber(balance="5"), self.customer
        transfer = {
            "from_account_id": sender["account_id"],
            "to_account_id": receiver["account_id"],
            "amount": "1",
        }
        moved = await self.send("POST", "/wallet/transfer", transfer)
        self.transfer_id = moved.json()["transaction_id"]
        self.disabled = await harness.create_admin("S")
        url = f"{V1}/admin/users/{self.disabled.id}/disable"
        assert (await harness.post(url, auth=self.maker)).status_code == 200

    async def _create_suspended(self) -> list[tuple[str, str, str, Any]]:
        """Suspend a record of each kind, and return the requests that activate them."""
        harness = self.harness
        agent, partner = await create_agent(harness), await harness.create_partner()
        processor = await harness.get_processor_id(await harness.create_processor())
        terminals = f"/processors/{processor}/terminals"
        terminal = (await self.send("POST", terminals, {"name": "Till 1"})).json()["terminal"]
        activations = []
        for operation, path, stop, start in (
            ("agent_phone", f"/agents/{agent['id']}", "suspend", "activate"),
            ("api_keys", f"/admin/partners/{partner.partner_id}", "suspend", "activate"),
            ("merchant_keys", f"{terminals}/{terminal['id']}", "block", "unblock"),
            ("merchant_keys", f"/processors/{processor}", "suspend", "activate"),
        ):
            stopped = await self.send("POST", f"{path}/{stop}", {"reason": "Under investigation"})
            assert stopped.status_code == 200, stopped.text
            activations.append((operation, "POST", f"{path}/{start}", {}))
        return activations

    async def send(
        self, method: str, path: str, body: Any = None, auth: BearerAuth | None = None
    ) -> httpx2.Response:
        return await self.harness.client.request(
            method, V1 + path, json=body, auth=auth or self.maker
        )

    async def get(self, path: str) -> Any:
        return (await self.send("GET", path)).json()

    async def list_requests(self) -> list[tuple[str, str, str, Any]]:
        """Return the operation, method, path and body of each guarded request."""
        customer, agent, partner = self.customer, self.agent, self.partner.partner_id
        processor = await self.harness.get_processor_id(self.processor)
        fees, commission = await self.get("/fee-rules"), await self.get("/commission-rules")
        compliance = (await self.get("/compliance/rules"))["data"][0]
        key_path = f"/admin/api-keys/{self.paying_key.id}"
        transfer = {"from_account_id": customer["account_id"], "amount": "1"}
        new_admin = {"email": "eve@example.com", "name": "Eve", "role": "system_admin"}
        new_rule = {
            "name": "Odd", "type": "TRANSACTION_COUNT", "transaction_types": ["agent_cashin"],
            "subject": "agent", "threshold": 500, "window_seconds": 86_400, "action": "alert",
        }  # fmt: skip
        return [
            ("agent_fund", "POST", f"/agents/{agent['id']}/fund", {"amount": "1"}),
            ("partner_fund", "POST", f"/admin/partners/{partner}/fund", {"amount": "1"}),
            *[
                (operation, "POST", "/wallet/transfer", {**transfer, "to_account_id": account})
                for operation, account in (
                    ("agent_fund", await self.get_account(agent["id"], "float")),
                    ("agent_fund", await self.get_account(agent["id"], "commission")),
                    ("partner_fund", await self.harness.get_account_id(self.partner)),
                    ("wallet_transfer", await self.harness.get_account_id(self.processor)),
                )
            ],
            (
                "wallet_transfer", "POST", "/wallet/fund-from-partner",
                {
                    "partner_id": partner, "subscriber_id": customer["id"], "amount": "0.50",
                    "partner_reference": "T-1",
                },
            ),
            (
                "reversals", "POST", f"/transactions/{self.transfer_id}/reverse",
                {"reason": "Wrong account", "request_id": "reversal-1"},
            ),
            (
                "reversals", "POST", f"/payouts/{self.paid_payouts[0]}/returned",
                {"reason": "Account closed"},
            ),
            (
                "reversals", "POST", f"/bank-statements/lines/{self.returned_line}/match",
                {"payout_id": self.paid_payouts[1]},
            ),
            (
                "processor_transfer", "POST", f"/processors/{processor}/transfer",
                {"subscriber_id": customer["id"], "amount": "0.50"},
            ),
            (
                "processor_transfer", "POST", "/wallet/transfer",
                {
                    "from_account_id": await self.harness.get_account_id(self.processor),
                    "to_account_id": customer["account_id"], "amount": "0.25",
                },
            ),
            ("bank_accounts", "POST", f"/bank-accounts/{self.bank_account}/verify", None),
            ("payouts", "POST", "/payouts", {"owner_id": agent["id"], "amount": "0.10"}),
            ("batches", "POST", f"/batches/{self.batch}/run", {}),
            (
                "refunds", "POST", f"/transactions/{self.payment}/refund",
                {"reason": "returned", "request_id": "refund-1"},
            ),
            ("fee_rules", "PUT", "/fee-rules", {"data": fees["data"][1:]}),
            ("fee_rules", "PUT", "/fee-rules/transfer", {"data": []}),
            ("commission_rules", "PUT", "/commission-rules", {"data": commission["data"][1:]}),
            ("account_rules", "PUT", "/account-rules/1", {"no_pin_limit": "1"}),
            ("compliance_rules", "POST", "/compliance/rules", new_rule),
            ("compliance_rules", "PUT", f"/compliance/rules/{compliance['id']}", {"name": "Odd"}),
            ("compliance_rules", "DELETE", f"/compliance/rules/{compliance['id']}", None),
            ("admin_users", "POST", "/admin/users", {**new_admin, "password": "a typed password"}),
            ("admin_users", "POST", f"/admin/users/{self.disabled.id}/enable", None),
            (
                "admin_users", "PUT", f"/admin/users/{self.disabled.id}",
                {"role": "finance_user"},
            ),
            ("admin_users", "POST", f"/admin/users/{self.disabled.id}/reset-factors", None),
            ("admin_users", "POST", f"/admin/users/{self.disabled.id}/reset-password", None),
            ("api_keys", "POST", "/admin/api-keys", {"name": "K", "scopes": ["payments:write"]}),
            ("api_keys", "PUT", key_path, {"name": "Renamed"}),
            ("api_keys", "POST", f"{key_path}/rotate", {}),
            ("api_keys", "POST", f"/admin/partners/{partner}/keys", None),
            ("api_keys", "POST", f"/admin/partners/{partner}/rotate-webhook-secret", {}),
            ("keysets", "POST", "/cards/keysets", {"name": "Bureau", "meta_read_key": "0" * 32}),
            ("keysets", "POST", f"/cards/{self.card}/personalize", {"keyset_id": self.keyset}),
            ("card_limits", "PUT", f"/cards/{self.child_card}", {"daily_limit": "100.50"}),
            ("api_keys", "POST", "/admin/partners", {"name": "P"}),
            ("overdraft_limits", "POST", "/admin/partners", {"name": "P", "overdraft_limit": "1"}),
            ("overdraft_limits", "PUT", f"/admin/partners/{partner}", {"overdraft_limit": "1"}),
            (
                "subscriber_phone", "PUT", f"/subscribers/{customer['id']}",
                {"phone_number": "+23276123499"},
            ),
            ("agent_phone", "PUT", f"/agents/{agent['id']}", {"phone_number": "+23276123498"}),
            ("agent_phone", "PUT", f"/agents/{agent['id']}", {"commission_tier": 2}),
            (
                "merchant_keys", "POST", "/processors",
                {
                    "name": "Kiosk", "public_name": "Kiosk", "phone_number": "+23276000009",
                    "email": "kiosk@example.com",
                },
            ),
            ("merchant_keys", "POST", f"/processors/{processor}/keys", {}),
            ("merchant_keys", "POST", f"/processors/{processor}/terminals", {"name": "Till 9"}),
            (
                "review_release", "POST", f"/compliance/alerts/{self.held_alert['id']}/resolve",
                {
                    "status": "resolved", "resolution_notes": "Checked",
                    "transaction_decision": "release",
                },
            ),
            ("kyc_level", "PUT", f"/subscribers/{customer['id']}", {"kyc_level": 2}),
            (
                "webhook_endpoints", "POST", "/admin/webhook-endpoints",
                {"url": "https://shop.example/2", "events": ["*"]},
            ),
            (
                "webhook_endpoints", "PUT", f"/admin/webhook-endpoints/{self.webhook_endpoint}",
                {"url": "https://shop.example/3"},
            ),
            (
                "webhook_endpoints", "POST",
                f"/admin/webhook-endpoints/{self.webhook_endpoint}/rotate-secret", {},
            ),
            ("branding", "PUT", "/admin/branding", {"name": "Salone Pay"}),
            *self.suspended,
        ]  # fmt: skip

    async def get_account(self, holder_id: str, kind: str) -> str:
        account_id = await self.harness.database.fetchval(
            "SELECT id FROM accounts WHERE owner_id = $1 AND kind = $2",
            ids.decode(ids.AGENT, holder_id),
            kind,
        )
        return ids.encode(ids.ACCOUNT, account_id)
