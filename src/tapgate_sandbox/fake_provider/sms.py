"""Simulated SMS provider: accepts each message once, and reports its delivery.

It counts the parts of a text on its own, by encoding it, and refuses texts that are too long.
"""

import asyncio
import re
from typing import Any, Literal

import httpx2
import msgspec

from tapgate_client.clock import Clock, system_clock
from tapgate_client.tls import get_tls_context

_MAX_PARTS = 3
_PHONE_PATTERN = re.compile(r"\+[1-9][0-9]{6,14}", re.ASCII)
#: The GSM 03.38 alphabet without the letters of ASCII, and the characters that take two septets.
_GSM_SIGNS = set("@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./:;<=>?¡ÄÖÑÜ§¿äöñüà")
_GSM_PAIRS = set("\f^{}\\[~]|€")


class SmsRequest(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    to: str
    text: str
    template: str


class ReceivedSms(msgspec.Struct, kw_only=True):
    """An SMS, with the number of requests that have sent it and the status reported last."""

    id: str
    to: str
    text: str
    template: str
    at: float
    requests: int = 1
    status: Literal["accepted", "delivered", "failed"] = "accepted"


class PlannedSmsFailure(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What happens to the next `times` requests: an error, a late response, or both.

    With `accepts`, the message is accepted although the response does not say so.
    """

    status: int | None = None
    delay_seconds: float = 0.0
    accepts: bool = False
    times: int = 1


class SmsProvider:
    """`reports` is whether accepted messages are reported as delivered at once."""

    def __init__(
        self,
        *,
        token: str = "fake-sms-token",  # noqa: S107 - for the fake only
        callback: str | None = None,
        reports: bool = True,
        clock: Clock = system_clock,
    ) -> None:
        self.token = token
        self.callback = callback
        self.failures: list[PlannedSmsFailure] = []
        self._reports = reports
        self._clock = clock
        self._messages: dict[str, ReceivedSms] = {}
        self._tasks: set[asyncio.Task[object]] = set()

    async def receive(self, body: bytes) -> int:
        """Process a request and return the response status."""
        failure = self._take_failure()
        status = self._accept(body) if failure is None or failure.accepts else 202
        if failure is not None:
            await asyncio.sleep(failure.delay_seconds)
            status = failure.status or status
        return status

    def list_messages(self, to: str | None = None) -> list[ReceivedSms]:
        """Return the accepted messages, oldest first."""
        return [item for item in self._messages.values() if to in (None, item.to)]

    async def report(self, message_id: str, status: Literal["delivered", "failed"]) -> int | None:
        """Report a delivery status; return the response status, or None without a response."""
        if message_id in self._messages:
            self._messages[message_id].status = status
        if self.callback is None:
            return None
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        content = msgspec.json.encode({"id": message_id, "status": status})
        try:
            async with httpx2.AsyncClient(
                timeout=10.0, trust_env=False, verify=get_tls_context()
            ) as http:
                response = await http.post(self.callback, content=content, headers=headers)
        except httpx2.HTTPError:
            return None
        return response.status_code

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _take_failure(self) -> PlannedSmsFailure | None:
        if not self.failures:
            return None
        failure = self.failures[0]
        failure.times -= 1
        if failure.times <= 0:
            self.failures.pop(0)
        return failure

    def _accept(self, body: bytes) -> int:
        try:
            request = msgspec.json.decode(body, type=SmsRequest)
        except msgspec.DecodeError:
            return 400
        if not _PHONE_PATTERN.fullmatch(request.to) or not request.text or not request.id:
            return 422
        if count_parts(request.text) > _MAX_PARTS:
            return 422
        known = self._messages.get(request.id)
        if known is not None:
            known.requests += 1
            return 202 if (known.to, known.text) == (request.to, request.text) else 409
        fields: dict[str, Any] = msgspec.structs.asdict(request)
        self._messages[request.id] = ReceivedSms(**fields, at=self._clock().timestamp())
        if self._reports:
            task = asyncio.create_task(self.report(request.id, "delivered"))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return 202


def count_parts(text: str) -> int:
    """Return the number of parts, each of which holds whole characters."""
    if all((char.isascii() and char.isalnum()) or char in _GSM_SIGNS | _GSM_PAIRS for char in text):
        sizes, single, part = [2 if char in _GSM_PAIRS else 1 for char in text], 160, 153
    else:
        sizes, single, part = [len(char.encode("utf-16-be")) // 2 for char in text], 70, 67
    if sum(sizes) <= single:
        return 1
    parts, room = 0, 0
    for size in sizes:
        if size > room:
            parts, room = parts + 1, part
        room -= size
    return parts
