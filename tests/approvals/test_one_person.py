"""No sequence of requests by one person executes a guarded operation."""

import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from builders.approvals import (
    APPROVALS_URL,
    RULES_URL,
    GuardedRecords,
    approve,
    decide,
    require_held,
    set_email,
    set_rules,
)
from drivers.console import ConsoleClient, ConsoleClients
from drivers.in_process import AppTransport
from harness import BearerAuth, Harness
from tapgate.approvals.execution import ApprovalWorker
from tapgate.cli import keys as keys_command
from tapgate.console.pages.approvals import build_recommended_rules
from tapgate.errors import ApiError
from tapgate.gateway import create_app

SEEDS = (1, 2, 3)
STEPS = 40

#: What guarded operations change: money, rules, rights and phone numbers.
GUARDED_STATE = {
    "accounts": "id, balance, overdraft",
    "fee_rules": "*",
    "commission_rules": "*",
    "account_rules": "*",
    "compliance_rules": "*",
    "approval_rules": "*",
    "admins": "id, role, status",
    "api_keys": "id, scopes, key_hash, deleted_at",
    "card_keysets": "*",
    "subscribers": "id, phone_number",
}


async def read_guarded_state(harness: Harness) -> dict[str, list[str]]:
    return {
        table: sorted(
            map(str, await harness.database.fetch(f"SELECT {columns} FROM {table} ORDER BY 1"))
        )
        for table, columns in GUARDED_STATE.items()
    }


class OnePerson:
    """A system_admin with a second account, an API key, the console and the command line."""

    def __init__(
        self,
        platform: GuardedRecords,
        accounts: list[BearerAuth],
        console: ConsoleClient,
        commands: list[Callable[[Any], Awaitable[None]]],
        choose: random.Random,
    ) -> None:
        self._platform, self._harness = platform, platform.harness
        self._accounts, self._console, self._commands = accounts, console, commands
        self._choose = choose
        self.steps: list[str] = []

    async def act(self) -> None:
        step = self._choose.choice(
            [
                self._send,
                self._send,
                self._decide,
                self._change_rules,
                self._use_console,
                self._use_command_line,
                self._use_api_key,
                self._wait,
            ]
        )
        self.steps.append(step.__name__)
        await step()

    async def _send(self) -> None:
        """Send a guarded request, possibly with the ID of an approval as idempotency key."""
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
            await decide(self._harness, self._choose.choice(approvals), verb, auth, **body)

    async def _change_rules(self) -> None:
        require_held(await self._harness.put(RULES_URL, json={"data": []}, auth=self._accounts[0]))

    async def _use_console(self) -> None:
        agent = self._platform.agent["id"]
        response = await self._console.submit_action("agent.fund", {"amount": "1"}, id=agent)
        assert response.headers["HX-Redirect"].startswith("/console/approvals/apr_")

    async def _use_command_line(self) -> None:
        keys_command.create(name="K", scope=["payments:write"], expires_at=None)
        with pytest.raises(ApiError, match="FORBIDDEN"):
            await self._commands.pop()(self._harness.services)

    async def _use_api_key(self) -> None:
        path = f"/subscribers/{self._platform.customer['id']}"
        body = {"phone_number": "+23276123499"}
        require_held(await self._platform.send("PUT", path, body, self._platform.writing_key))

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
    commands: list[Callable[[Any], Awaitable[None]]] = []
    monkeypatch.setattr(keys_command, "run_with_services", commands.append)
    await set_rules(harness, *build_recommended_rules())
    transport = AppTransport(create_app(harness.services))
    console = ConsoleClients(harness, transport).create_signed_out()
    console.set_session(platform.maker)
    before = await read_guarded_state(harness)
    for seed in SEEDS:
        accounts = [platform.maker, second]
        person = OnePerson(platform, accounts, console, commands, random.Random(seed))
        for _ in range(STEPS):
            await person.act()
        assert await read_guarded_state(harness) == before, (seed, person.steps)
    # The requests were real: another person can execute one of them.
    _, method, path, body = (await platform.list_requests())[0]
    held = require_held(await platform.send(method, path, body))
    assert (await approve(harness, held))["status"] == "executed"
    assert await read_guarded_state(harness) != before
