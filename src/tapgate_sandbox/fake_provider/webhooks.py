"""Webhook deliveries to the business, signed if a secret is set and redelivered on failure."""

import asyncio
import hashlib
import hmac
import time
from collections.abc import Coroutine, Sequence
from datetime import datetime
from typing import Any

import httpx2
import msgspec

from tapgate_client.tls import get_tls_context


class CallbackSender:
    """Sends deliveries to the callback URL; without one, it sends nothing."""

    def __init__(
        self, *, callback: str | None, app_secret: str | None, redelivery_delays: Sequence[float]
    ) -> None:
        self.callback = callback
        self._secret = app_secret
        self._redelivery_delays = redelivery_delays
        self._client: httpx2.AsyncClient | None = None
        self._tasks: set[asyncio.Task[object]] = set()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._client is not None:
            await self._client.aclose()

    async def deliver(
        self, values: Sequence[dict[str, Any]], field: str = "messages"
    ) -> int | None:
        """Deliver the values; return the first attempt's status, or None without a response.

        A failed delivery is retried in the background.
        """
        if self.callback is None:
            return None
        body = msgspec.json.encode(
            {
                "object": "whatsapp_business_account",
                "entry": [
                    {
                        "id": "100000000000001",
                        "time": int(time.time()),
                        "changes": [{"value": value, "field": field} for value in values],
                    }
                ],
            }
        )
        status = await self._post(body)
        if status != 200:
            self.run_in_background(self._redeliver(body))
        return status

    def run_in_background(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _redeliver(self, body: bytes) -> None:
        for delay in self._redelivery_delays:
            await asyncio.sleep(delay)
            if await self._post(body) == 200:
                return

    async def _post(self, body: bytes) -> int | None:
        headers = {"Content-Type": "application/json"}
        if self._secret is not None:
            digest = hmac.new(self._secret.encode(), body, hashlib.sha256).hexdigest()
            headers["X-Hub-Signature-256"] = f"sha256={digest}"
        if self._client is None:
            self._client = httpx2.AsyncClient(
                timeout=10.0, trust_env=False, verify=get_tls_context()
            )
        try:
            response = await self._client.post(str(self.callback), content=body, headers=headers)
        except httpx2.HTTPError:
            return None
        return response.status_code


def build_value(phone_number_id: str, **parts: Any) -> dict[str, Any]:
    """Return the `value` of one change, with contacts and messages or with status reports."""
    metadata = {"display_phone_number": "15550001111", "phone_number_id": phone_number_id}
    return {"messaging_product": "whatsapp", "metadata": metadata, **parts}


def to_unix_seconds(moment: datetime) -> str:
    return str(int(moment.timestamp()))
