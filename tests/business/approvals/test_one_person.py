"""No sequence of requests by one person executes a guarded operation."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from builders.approvals import (
    APPROVALS_URL,
    RULES_URL,
    GuardedRecords,
    approve,
    build_rule,
    decide,
    get_email,
    require_held,
    set_email,
    set_rules,
)
from builders.participants import change_status
from drivers.console import ConsoleClient, ConsoleClients
from drivers.in_process import AppTransport
from harness import BearerAuth, Harness
from tapgate.business.approvals.execution import ApprovalWorker
from tapgate.cli import admin as admin_command
from tapgate.cli import keys as keys_command
from tapgate.server.gateway import create_app
from tapgate.sites.console.pages.approval_rules import build_recommended_rules
from tapgate_client import ids
from tapgate_client.errors import ApiError

SEEDS = (1, 2, 3)
STEPS = 50

#: What guarded operations change: money, rules, rights, access and phone numbers.
GUARDED_STATE = (
    "SELECT id, balance, overdraft FROM accounts",
    "SELECT * FROM fee_rules",
    "SELECT * FROM commission_rules",
    "SELECT * FROM account_rules",
    "SELECT * FROM compliance_rules",
    "SELECT * FROM approval_rules",
    "SELECT id, role, status, password_hash FROM admins",
    "SELECT * FROM admin_invitations",
    "SELECT * FROM admin_totp",
    "SELECT id, scopes, key_hash, deleted_at FROM api_keys WHERE 'payments:write' = ANY (scopes)",
    "SELECT * FROM card_keysets",
    "SELECT * FROM hmac_keys",
    "SELECT id, phone_number, commission_tier FROM agents",
    "SELECT id, kyc_level FROM accounts",
    "SELECT id, url, events, secret FROM webhook_endpoints",
    "SELECT * FROM branding",
    "SELECT id, status FROM transactions WHERE status = 'under_review'",
    "SELECT id, webhook_secret FROM partners",
    "SELECT id, phone_number FROM subscribers",
)


async def read_guarded_state(harness: Harness) -> dict[str, list[str]]:
    return {query: sorted(map(str, await harness.database.fetch(query))) for query in GUARDED_STATE}


class OnePerson:
    """A system_admin with a second account, API keys, the console and the command line.

    `colleague_key` is an API key of another admin, `colleague` that admin's email address.
    """

    def __init__(
        self,
        platform: GuardedRecords,
        accounts: list[BearerAuth],
        consoles: list[ConsoleClient],
        commands: list[Callable[[Any], Awaitable[None]]],
        choose: random.Random,
        *,
        colleague_key: BearerAuth,
        colleague: str,
    ) -> None:
        self._platform, self._harness = platform, platform.harness
        self._accounts, self._consoles, self._commands = accounts, consoles, commands
        self._choose = choose
        self._colleague_key, self._colleague = colleague_key, colleague
        self._keys = [platform.writing_key]
        self.steps: list[str] = []

    async def act(self) -> None:
        step = self._choose.choice(
            [
                self._send,
                self._send,
                self._decide,
                self._decide,
                self._change_rules,
                self._use_console,
                self._decide_in_the_console,
                self._use_command_line,
                self._use_api_key,
                self._use_paying_key,
                self._take_over_api_key,
                self._wait,
            ]
        )
        self.steps.append(step.__name__)
        await step()

    async def _send(self) -> None:
        """Send a guarded request, possibly with an approval ID as idempotency key."""
        requests = await self._platform.list_requests()
        _, method, path, body = self._choose.choice(requests)
        if isinstance(body, dict) and "amount" in body and self._choose.random() < 0.5:
            approvals = await self._list_approvals()
            if approvals:
                body = {**body, "request_id": self._choose.choice(approvals)["id"]}
        response = await self._platform.send(
            method, path, body, self._choose.choice(self._accounts)
        )
        assert response.status_code in (202, 403, 404, 409), (path, response.text)

    async def _list_approvals(self) -> list[dict[str, Any]]:
        response = await self._harness.get(APPROVALS_URL, auth=self._accounts[0])
        return list(response.json()["data"])

    async def _decide(self) -> None:
        approvals = await self._list_approvals()
        if approvals:
            verb = self._choose.choice(["approve", "approve", "reject", "cancel"])
            body = {"reason": "x"} if verb == "reject" else {}
            auth = self._choose.choice(self._accounts)
            await decide(self._harness, self._choose.choice(approvals[:5]), verb, auth, **body)

    async def _change_rules(self) -> None:
        if self._choose.random() < 0.5:
            rules: dict[str, Any] = {"data": []}
            auth = self._accounts[0]
            require_held(await self._harness.put(RULES_URL, json=rules, auth=auth))
        else:
            held = await self._consoles[0].post_form("/console/approvals/rules", {})
            assert held.headers["Location"].startswith("/console/approvals/apr_")

    async def _use_console(self) -> None:
        agent, console = self._platform.agent["id"], self._choose.choice(self._consoles)
        response = await console.submit_action(
            "agent.fund", {"amount": "1", "approval_reason": "Float"}, id=agent
        )
        assert response.headers["HX-Redirect"].startswith("/console/approvals/apr_")

    async def _decide_in_the_console(self) -> None:
        approvals = await self._list_approvals()
        if approvals:
            console, approval = self._choose.choice(self._consoles), self._choose.choice(approvals)
            response = await console.submit_action("approval.approve", id=approval["id"])
            assert "HX-Redirect" not in response.headers, response.text

    async def _use_command_line(self) -> None:
        command = self._choose.choice(["payments:write", "subscribers:write", "reset"])
        if command == "reset":
            factors = self._choose.random() < 0.5
            admin_command.reset_password(email=self._colleague, factors=factors)
        else:
            keys_command.create(name="K", scope=[command], expires_at=None)
        with pytest.raises(ApiError, match="FORBIDDEN"):
            await self._commands.pop()(self._harness.services)

    async def _use_api_key(self, key: BearerAuth | None = None) -> dict[str, Any]:
        path = f"/subscribers/{self._platform.customer['id']}"
        body = {"phone_number": "+23276123499"}
        auth = key or self._choose.choice(self._keys)
        return require_held(await self._platform.send("PUT", path, body, auth))

    async def _use_paying_key(self) -> None:
        body = {
            "partner_id": self._platform.partner.partner_id, "amount": "1",
            "subscriber_id": self._platform.customer["id"], "partner_reference": "K-1",
        }  # fmt: skip
        path, key = "/wallet/fund-from-partner", self._platform.paying_key
        require_held(await self._platform.send("POST", path, body, key))

    async def _take_over_api_key(self) -> None:
        """Rotate a colleague's API key. It cannot pay, so this is not guarded."""
        path = f"/admin/api-keys/{self._colleague_key.id}/rotate"
        response = await self._platform.send("POST", path, {})
        assert response.status_code == 200, response.text
        key = BearerAuth(response.json()["key"], self._colleague_key.id)
        self._keys = [self._platform.writing_key, key]
        held = await self._use_api_key(key)
        for account in self._accounts:
            await decide(self._harness, held, "approve", account)

    async def _wait(self) -> None:
        await self._harness.database.execute(
            """UPDATE approvals SET next_attempt_at = now() - interval '1 hour',
               expires_at = CASE WHEN random() < 0.2 THEN created_at ELSE expires_at END"""
        )
        await ApprovalWorker(self._harness.services).work()


async def test_one_person_executes_nothing(
    harness: Harness,
    platform: GuardedRecords,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    second = await harness.create_admin("F")
    await set_email(harness, platform.maker, "mallory@example.com")
    await set_email(harness, second, "Mallory+finance@example.com")
    await harness.database.execute(
        "UPDATE api_keys SET created_by = (SELECT id FROM admins WHERE email LIKE 'mallory@%')"
    )
    colleague_key = await harness.create_api_key("subscribers:write")
    colleague = await get_email(harness, await harness.create_admin())
    commands: list[Callable[[Any], Awaitable[None]]] = []
    for module in (keys_command, admin_command):
        monkeypatch.setattr(module, "run_with_services", commands.append)
    await set_rules(harness, *build_recommended_rules())
    accounts = [platform.maker, second]
    clients = ConsoleClients(harness, AppTransport(create_app(harness.services)))
    consoles = [clients.create_signed_out() for _ in accounts]
    for console, account in zip(consoles, accounts, strict=True):
        console.set_session(account)
    before = await read_guarded_state(harness)
    for seed in SEEDS:
        person = OnePerson(
            platform,
            accounts,
            consoles,
            commands,
            random.Random(seed),
            colleague_key=colleague_key,
            colleague=colleague,
        )
        for _ in range(STEPS):
            await person.act()
        assert await read_guarded_state(harness) == before, (seed, person.steps)
    # The requests were real: another person can execute one of them.
    _, method, path, body = (await platform.list_requests())[0]
    held = require_held(await platform.send(method, path, body))
    assert (await approve(harness, held))["status"] == "executed"
    assert await read_guarded_state(harness) != before


LIMIT = 100_00
TOP_UP_PATH = "/wallet/fund-from-partner"


class SplittingPerson:
    """A person who funds agents and customers in parts, over all ways into their accounts.

    The API keys act for the person.
    """

    def __init__(
        self,
        platform: GuardedRecords,
        accounts: list[BearerAuth],
        keys: list[BearerAuth],
        console: ConsoleClient,
        choose: random.Random,
    ) -> None:
        self._platform, self._harness = platform, platform.harness
        self._accounts, self._console, self._choose = accounts, console, choose
        self._keys = keys
        self._request_ids = [f"{accounts[0].id}-{number}" for number in range(3)]

    async def act(self) -> None:
        """Send one request, several in parallel, or let requests fail."""
        step = self._choose.choice(["one", "one", "console", "several", "suspended"])
        if step == "console":
            amount = self._choose_amount()
            agent = self._platform.agent["id"]
            await self._console.submit_action("agent.fund", {"amount": amount}, id=agent)
        elif step == "suspended":
            await change_status(self._harness, self._platform.agent, "suspend")
            await self._send()
            await change_status(self._harness, self._platform.agent, "activate")
        else:
            await asyncio.gather(*(self._send() for _ in range(4 if step == "several" else 1)))

    async def _send(self) -> None:
        agent, amount = self._platform.agent["id"], self._choose_amount()
        body = {"amount": amount}
        if self._choose.random() < 0.3:
            body["request_id"] = self._choose.choice(self._request_ids)
        path = f"/agents/{agent}/fund"
        auth = self._choose.choice(self._accounts)
        kind = self._choose.choice(["fund", "float", "commission", "top_up", "top_up"])
        if kind == "top_up":
            auth, path = self._choose.choice([*self._accounts, *self._keys]), TOP_UP_PATH
            body["partner_id"] = self._platform.partner.partner_id
            body["subscriber_id"] = self._platform.customer["id"]
            body["partner_reference"] = f"T-{self._choose.random()}"
        elif kind != "fund":
            path = "/wallet/transfer"
            body["from_account_id"] = self._platform.customer["account_id"]
            body["to_account_id"] = await self._platform.get_account(agent, kind)
        response = await self._platform.send("POST", path, body, auth)
        assert response.status_code in (200, 202, 402, 403, 409), response.text

    def _choose_amount(self) -> str:
        return self._choose.choice(["0.01", "1", "30", "50", "99.99", "100", "100.01"])


async def sum_unapproved(harness: Harness, agent: dict[str, Any], operation: str) -> int:
    """Return the amount that an agent received, or that was transferred, without an approval."""
    total: int = await harness.database.fetchval(
        """SELECT coalesce(sum(amount), 0)::bigint FROM transactions
           WHERE CASE WHEN $2 = 'agent_fund'
                      THEN to_account IN (SELECT id FROM accounts WHERE owner_id = $1)
                      ELSE type IN ('transfer', 'partner_fund') END
             AND status = 'completed' AND NOT coalesce(context ? 'approval_id', false)""",
        ids.decode(ids.AGENT, agent["id"]),
        operation,
    )
    return total


@pytest.mark.parametrize("operation", ["agent_fund", "wallet_transfer"])
async def test_one_person_cannot_split_an_amount(
    harness: Harness, platform: GuardedRecords, operation: str
) -> None:
    await harness.disable_compliance_rules()
    await harness.deposit(platform.customer["id"], "5000")
    partner = f"/admin/partners/{platform.partner.partner_id}"
    funding = await platform.send("POST", f"{partner}/fund", {"amount": "5000"})
    assert funding.status_code == 200, funding.text
    await set_rules(harness, build_rule(operation, above="100"))
    transport = AppTransport(create_app(harness.services))
    first = before = await sum_unapproved(harness, platform.agent, operation)
    for seed in SEEDS:
        accounts = [await harness.create_admin(role) for role in ("A", "A", "F")]
        for number, account in enumerate(accounts):
            await set_email(harness, account, f"Eve{seed}+{number}@example.com")
        keys = [await create_key_for(harness, account) for account in accounts[:2]]
        console = ConsoleClients(harness, transport).create_signed_out()
        console.set_session(accounts[0])
        person = SplittingPerson(platform, accounts, keys, console, random.Random(seed))
        for _ in range(STEPS):
            await person.act()
        after = await sum_unapproved(harness, platform.agent, operation)
        assert after - before <= LIMIT, (seed, after - before)
        before = after
    assert before > first, "the requests were real: some needed no approval"


async def create_key_for(harness: Harness, admin: BearerAuth) -> BearerAuth:
    """Create an API key that can pay, in an admin's name."""
    key = await harness.create_api_key("payments:write")
    await harness.database.execute(
        "UPDATE api_keys SET created_by = $2 WHERE id = $1",
        ids.decode(ids.KEY, key.id),
        ids.decode(ids.ADMIN, admin.id),
    )
    return key
