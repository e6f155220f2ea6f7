"""Chat messages during the rounds: each is stored and answered exactly once."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator
from typing import Final

from drivers.processes import ACCESS_TOKEN, GRAPH_APP_SECRET, PHONE_NUMBER_ID
from tapgate.runtime.store.database import Database
from tapgate_sandbox.fake_provider import server
from tapgate_sandbox.fake_provider.provider import Provider, UserMessage
from tapgate_sandbox.fake_provider.rules import ProviderRules
from torture import plan
from torture.findings import Findings
from torture.participants import Participants

_WEBHOOK_PATH: Final = "/api/v1/webhooks/messaging"
_NO_LIMIT: Final = 1_000_000
_INTERVAL_SECONDS: Final = 0.5
#: Longer than the lease on a message that a killed messenger was about to send.
_REPLY_TIMEOUT_SECONDS: Final = 90.0
#: Redeliveries from the provider; the real one retries for days.
_REDELIVERY_DELAYS: Final = (0.1, 0.2, 0.5, *[1.0] * 120)


class ChatLoad:
    """People who ask for their balance, through a fake provider."""

    def __init__(self, provider: Provider, graph_url: str) -> None:
        self._provider = provider
        self._is_stopped = False
        self._message_ids: dict[str, str] = {}  # message id -> phone number
        self.settings = {
            "TAPGATE_MESSENGER_GRAPH_URL": graph_url,
            "TAPGATE_MESSENGER_ACCESS_TOKEN": ACCESS_TOKEN,
            "TAPGATE_MESSENGER_PHONE_NUMBER_ID": PHONE_NUMBER_ID,
            "TAPGATE_MESSENGER_APP_SECRET": GRAPH_APP_SECRET,
        }

    @property
    def message_count(self) -> int:
        return len(self._message_ids)

    @property
    def reply_count(self) -> int:
        return len(self._provider.sent)

    async def run(self, messenger_url: str, participants: Participants) -> None:
        """Send a message every half second until stopped or canceled."""
        self._provider.webhooks.callback = f"{messenger_url}{_WEBHOOK_PATH}"
        while not self._is_stopped:
            phone = participants.phones[
                plan.FUNDED_CUSTOMERS[self.message_count % len(plan.FUNDED_CUSTOMERS)]
            ]
            # Do not wait for the delivery: a paused messenger must not stop the load.
            message_id = await self._provider.send_user_message(
                phone.removeprefix("+"), UserMessage(text="balance", hold=True)
            )
            self._message_ids[message_id] = phone
            self._provider.webhooks.run_in_background(
                self._provider.deliver_held("sent", together=False)
            )
            await asyncio.sleep(_INTERVAL_SECONDS)

    def stop(self) -> None:
        self._is_stopped = True

    async def reconcile(self, database: Database, findings: Findings) -> None:
        """Wait until all messages are answered; report lost, failed and repeated ones."""
        deadline = time.monotonic() + _REPLY_TIMEOUT_SECONDS
        while time.monotonic() < deadline and not await self._is_answered(database):
            await asyncio.sleep(0.2)
        rows = await database.fetch("SELECT message_id, status FROM messenger.received")
        statuses = {row["message_id"]: row["status"] for row in rows}
        for message_id in self._message_ids.keys() - statuses.keys():
            findings.add("chat", message_id, "was not received")
        for message_id, status in statuses.items():
            if status != "handled":
                findings.add("chat", message_id, f"has the status {status}")
        await self._reconcile_replies(database, findings)

    async def _is_answered(self, database: Database) -> bool:
        handled = await database.fetchval(
            "SELECT count(*) FROM messenger.received WHERE status = 'handled'"
        )
        waiting = await database.fetchval(
            "SELECT count(*) FROM messenger.outbox WHERE status = 'waiting'"
        )
        return bool(handled == self.message_count and not waiting)

    async def _reconcile_replies(self, database: Database, findings: Findings) -> None:
        """Require one reply per message in the outbox, and each one at the provider.

        The provider may receive a reply twice if the messenger is killed after sending it.
        """
        rows = await database.fetch(
            """SELECT address, count(*) AS replies, count(*) FILTER (WHERE status = 'sent') AS sent
               FROM messenger.outbox WHERE key IS NULL  -- the others are receipts and notices
               GROUP BY address"""
        )
        expected = Counter(self._message_ids.values())
        replies = Counter({row["address"]: row["replies"] for row in rows})
        sent = Counter({row["address"]: row["sent"] for row in rows})
        for phone, count in expected.items():
            delivered = len(self._provider.list_sent_to(phone))
            if replies[phone] != count or sent[phone] != count or delivered < count:
                findings.add(
                    "chat",
                    phone,
                    f"{count} messages, {replies[phone]} replies, {sent[phone]} sent,"
                    f" {delivered} at the provider",
                )


@contextlib.asynccontextmanager
async def run_chat_provider() -> AsyncIterator[ChatLoad]:
    rules = ProviderRules(
        max_per_second=_NO_LIMIT, pair_burst=_NO_LIMIT, redelivery_delays=_REDELIVERY_DELAYS
    )
    provider = Provider(
        access_token=ACCESS_TOKEN,
        phone_number_id=PHONE_NUMBER_ID,
        app_secret=GRAPH_APP_SECRET,
        rules=rules,
    )
    async with server.serve(provider) as url:
        yield ChatLoad(provider, url)
