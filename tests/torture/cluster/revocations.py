"""Revocations during a fault: once acknowledged, no node accepts what was revoked."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

import httpx2

from drivers.actors import Admin, require_success
from drivers.processes import ADMIN
from harness import PIN
from torture.cluster.target import ClusterTarget
from torture.findings import Findings
from torture.participants import Participants

_TIMEOUT_SECONDS: Final = 90.0
_CARD: Final = "TORTURE-REVOKED"
#: Statuses that end revocation retries: done, or done by an earlier attempt.
_DONE_STATUSES: Final = frozenset({200, 204, 401, 404, 409})

Check = Callable[[httpx2.AsyncClient], Awaitable[httpx2.Response]]


class RevocationProbe:
    """Revokes an API key, an admin session and a card in each round, and uses them afterwards."""

    def __init__(
        self, target: ClusterTarget, participants: Participants, findings: Findings
    ) -> None:
        self._target = target
        self._participants = participants
        self._findings = findings
        self._front = _open_client(target.port)
        self._gateways = {
            name: _open_client(port) for name, port in target.list_gateway_ports().items()
        }
        self.count = 0

    async def close(self) -> None:
        for client in (self._front, *self._gateways.values()):
            await client.aclose()

    async def start(self) -> None:
        """Register the customer whose cards are blocked."""
        self._admin = await Admin.log_in(self._front, ADMIN["email"], ADMIN["password"])
        app = await self._admin.create_app()
        created = await app.register_customer("Revoked Kamara")
        self._participants.ids["revoked"] = created.id
        merchant = await self._admin.create_merchant("Probe")
        self._participants.ids["probe"] = merchant.id
        self._terminal, _ = await self._admin.create_terminal(merchant, "Till")
        await self._admin.upload_cards(_CARD)
        await app.link_card(_CARD, created)

    async def prepare_round(self) -> None:
        """Create credentials, and use them on every node, so that the nodes cache them."""
        if self.count:
            require_success(await self._admin.post(f"cards/{_CARD}/unblock"))
        self._app = await self._admin.create_app("balance:read")
        self._session = await Admin.log_in(self._front, ADMIN["email"], ADMIN["password"])
        for client in self._gateways.values():
            for subject, check in self._list_checks().items():
                assert not _is_rejected(await check(client)), subject

    async def revoke(self) -> None:
        """Revoke everything through HAProxy, and require that every node rejects it."""
        revocations = (
            lambda: self._admin.delete(f"admin/api-keys/{self._app.id}"),
            lambda: self._session.post("admin/logout"),
            lambda: self._admin.post(f"cards/{_CARD}/block", reason="customer_request"),
        )
        await asyncio.gather(*map(_retry_until_done, revocations))
        self.count += 1
        await asyncio.gather(
            *(
                self._require_rejection(node, subject, check)
                for node in self._gateways
                for subject, check in self._list_checks().items()
            )
        )

    def _list_checks(self) -> dict[str, Check]:
        app, session, terminal = self._app, self._session, self._terminal
        customer = self._participants.ids["revoked"]
        return {
            "API key": lambda client: app.with_client(client).get(f"balance/{customer}"),
            "admin session": lambda client: session.with_client(client).get("admin/me"),
            "card": lambda client: terminal.with_client(client).verify_card(_CARD, PIN),
        }

    async def _require_rejection(self, node: str, subject: str, check: Check) -> None:
        """Send requests until the node responds; its first response must be a rejection."""
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            try:
                response = await check(self._gateways[node])
            except httpx2.HTTPError:
                await asyncio.sleep(0.1)
                continue
            if response.status_code < 500:
                if not _is_rejected(response):
                    self._findings.add(
                        "revocation", f"{subject} on {node}", f"accepted: {response.text}"
                    )
                return
            await asyncio.sleep(0.1)
        self._findings.add("unanswered", f"{subject} on {node}", "no response")


def _is_rejected(response: httpx2.Response) -> bool:
    """Return whether a credential was rejected, or the card is reported as inactive."""
    return response.status_code == 401 or response.json().get("is_active") is False


def _open_client(port: int) -> httpx2.AsyncClient:
    """Open a client that waits longer than a node is paused."""
    return httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60)


async def _retry_until_done(revoke: Callable[[], Awaitable[httpx2.Response]]) -> None:
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while True:
        try:
            response = await asyncio.wait_for(revoke(), 10)
            if response.status_code in _DONE_STATUSES:
                return
            detail = f"{response.status_code} {response.text}"
        except (httpx2.HTTPError, TimeoutError) as error:
            detail = repr(error)
        if time.monotonic() > deadline:
            raise RuntimeError(f"a revocation was not accepted: {detail}")
        await asyncio.sleep(0.1)
