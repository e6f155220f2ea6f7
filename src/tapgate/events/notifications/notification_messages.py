"""Outbox for messages to phones, sent through the messenger.

A message is a row written in the same database transaction as the change it reports. The sender
posts a message repeatedly until it is accepted by the messenger or expires. The message id is the
idempotency key, with which the messenger discards duplicates. Parameters may contain one-time
codes. They are sealed while the message is pending, removed when it is accepted or expires, and
never logged.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, NoReturn, Protocol
from urllib.parse import urlsplit

import msgspec
import structlog

from tapgate.core.message_templates import is_essential
from tapgate.core.vault import Vault
from tapgate.http.api.services import Services
from tapgate.runtime.background import run_periodically
from tapgate.runtime.http_client import HttpClient
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate.runtime.store.work_queue import (
    LEASE_DURATION,
    ResultUpdate,
    WorkQueue,
    compute_backoff,
)
from tapgate_client import ids, signing

#: Name under which the gateway signs requests to other services.
SERVICE_NAME = "gateway"
POLL_INTERVAL_SECONDS = 0.5

_MESSAGES_PATH = "/api/v1/messages/template"
#: The first batch is small, because the messenger may be down. Later batches are larger.
_FIRST_BATCH_SIZE = 20
_BATCH_SIZE = 200
_MAX_CONCURRENT_REQUESTS = 10
REQUEST_TIMEOUT_SECONDS = 10.0
#: No request in a batch starts later. Together with the request timeout, it is less than a lease.
MAX_BATCH_SECONDS = 15.0

_log = structlog.get_logger()


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """Message to enqueue: recipient, template and parameters."""

    to: str
    template: str
    parameters: list[str]
    language: str = "en"
    expires_at: datetime
    #: Button that the messenger adds to the message.
    button: str | None = None

    def __repr__(self) -> str:
        """Return a representation without recipient and parameters, which may be secret."""
        return f"Message(template={self.template!r})"


class PendingMessage(msgspec.Struct, frozen=True, kw_only=True):
    """Message that the messenger has not yet accepted, with its parameters decrypted."""

    message_id: str
    template: str
    language: str
    parameters: list[str]
    created_at: datetime


class _Response(Protocol):
    @property
    def status_code(self) -> int: ...


class MessengerClient(Protocol):
    """HTTP client with which messages are sent. Raises an exception if there is no response."""

    async def post(self, url: str, *, content: bytes, headers: Mapping[str, str]) -> _Response: ...


class LeasedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """Message leased to this process."""

    id: int
    recipient: str
    template: str
    language: str
    parameters: bytes
    attempts: int
    button: str | None = None


#: A message, and the problem with which its request failed, or None.
_Result = tuple[LeasedMessage, str | None]

_QUEUE = WorkQueue("messages", ", ".join(LeasedMessage.__struct_fields__))
BACKLOG_SQL: Final = _QUEUE.build_backlog_sql("messages")
_DELIVERED = ResultUpdate(_QUEUE, "status = 'delivered', parameters = NULL", {}, accepts_late=True)
_RETRY = ResultUpdate(_QUEUE, "next_attempt_at = result.retry_at", {"retry_at": "timestamptz"})


async def enqueue_message(
    tx: Transaction,
    vault: Vault,
    *,
    to: str,
    template: str,
    parameters: list[str],
    language: str = "en",
    expires_at: datetime,
    button: str | None = None,
) -> None:
    """Enqueue a message. The message sender sends it after `tx` commits."""
    message = Message(
        to=to,
        template=template,
        parameters=parameters,
        language=language,
        expires_at=expires_at,
        button=button,
    )
    await enqueue_messages(tx, vault, [message])


async def enqueue_messages(
    tx: Transaction, vault: Vault, messages: Sequence[Message], *, is_leased: bool = False
) -> list[LeasedMessage]:
    """Enqueue several messages in one statement, and return them.

    With `is_leased`, they are leased to this process, which sends them after `tx` commits.
    """
    messages = await _remove_unwanted(tx, messages)
    if not messages:
        return []
    attempts, now = int(is_leased), tx.now()
    leased = [_build_leased(vault, tx.new_id(), message, attempts) for message in messages]
    await tx.execute(
        """INSERT INTO messages (id, recipient, template, language, parameters, expires_at,
                                 button, attempts, next_attempt_at, created_at)
           SELECT new.*, $8::smallint, $9::timestamptz, $10::timestamptz
           FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bytea[],
                       $6::timestamptz[], $7::text[]) AS new""",
        [message.id for message in leased],
        [message.to for message in messages],
        [message.template for message in messages],
        [message.language for message in messages],
        [message.parameters for message in leased],
        [message.expires_at for message in messages],
        [message.button for message in messages],
        attempts,
        now + LEASE_DURATION if is_leased else now,
        now,
    )
    return leased


async def _remove_unwanted(tx: Transaction, messages: Sequence[Message]) -> Sequence[Message]:
    """Remove messages that are not essential and whose recipient has opted out of them."""
    optional = {message.to for message in messages if not is_essential(message.template)}
    if not optional:
        return messages
    rows = await tx.fetch(
        """SELECT phone_number FROM subscribers
           WHERE phone_number = ANY ($1::text[]) AND messages = 'essential'""",
        list(optional),
    )
    opted_out = {row["phone_number"] for row in rows}
    return [
        message
        for message in messages
        if is_essential(message.template) or message.to not in opted_out
    ]


def _build_leased(vault: Vault, message_id: int, message: Message, attempts: int) -> LeasedMessage:
    return LeasedMessage(
        id=message_id,
        recipient=message.to,
        template=message.template,
        language=message.language,
        parameters=vault.seal(
            msgspec.json.encode(message.parameters), build_seal_context(message_id)
        ),
        attempts=attempts,
        button=message.button,
    )


async def list_pending(database: Database, vault: Vault, to: str) -> list[PendingMessage]:
    """Return the pending messages to a phone number, newest first.

    Developers can thus read one-time codes without running a messenger.
    """
    rows = await database.fetch(
        """SELECT id, template, language, parameters, created_at FROM messages
           WHERE recipient = $1 AND status = 'pending' ORDER BY id DESC""",
        to,
    )
    return [
        PendingMessage(
            message_id=ids.encode(ids.MESSAGE, row["id"]),
            template=row["template"],
            language=row["language"],
            parameters=_open_parameters(vault, row["id"], row["parameters"]),
            created_at=row["created_at"],
        )
        for row in rows
    ]


class MessageSender:
    """Background worker that passes enqueued messages to the messenger.

    Any number of instances may run, because a message is leased to one of them at a time.
    """

    def __init__(self, services: Services, client: MessengerClient | None = None) -> None:
        self._database = services.database
        self._vault = services.vault
        self._clock = services.clock
        self._own_client = HttpClient(timeout_seconds=REQUEST_TIMEOUT_SECONDS)
        self._client: MessengerClient = client or self._own_client
        self._url = services.settings.messenger_url + _MESSAGES_PATH
        self._secret = services.settings.service_secrets.get(SERVICE_NAME)
        self._signature = ("", "")  # the latest, with its timestamp
        #: Whether the messenger has accepted a message from the latest batch.
        self.is_accepting = False

    async def run(self) -> NoReturn:
        """Send messages until canceled. Continue after database or messenger outages."""
        if self._secret is None:
            _log.warning("messages.sender_disabled", missing_service_secret=SERVICE_NAME)
        try:
            await run_periodically(
                self.send_due, every=POLL_INTERVAL_SECONDS, name="messages.sender"
            )
        finally:
            self._own_client.close()

    async def send_due(self) -> None:
        """Expire messages past their deadline, then send due messages in batches.

        Stops after a batch in which every message fails. Without a service secret, nothing is sent.
        """
        await self._expire()
        limit = _FIRST_BATCH_SIZE
        while self._secret is not None:
            rows = await _QUEUE.lease(self._database, now=self._clock(), limit=limit)
            await self.send([LeasedMessage(**row) for row in rows])
            if len(rows) < limit or not self.is_accepting:
                return  # no more due messages, or the messenger is probably down
            limit = _BATCH_SIZE

    async def send(self, leased: Sequence[LeasedMessage]) -> None:
        """Post messages that are leased to this process, and record the results.

        If the messenger is slow, the remaining messages are due again when their leases expire.
        """
        results: list[_Result] = []
        remaining, stops_at = iter(leased), time.monotonic() + MAX_BATCH_SECONDS

        async def post_remaining() -> None:
            for message in remaining:
                results.append((message, await self.post(message)))
                if time.monotonic() > stops_at:
                    return

        lanes = min(len(leased), _MAX_CONCURRENT_REQUESTS)
        await asyncio.gather(*(post_remaining() for _ in range(lanes)))
        if leased:
            self.is_accepting = any(problem is None for _, problem in results)
        await self._record_results(results)

    async def _expire(self) -> None:
        await self._database.execute(
            """UPDATE messages SET status = 'expired', parameters = NULL
               WHERE status = 'pending' AND expires_at <= $1""",
            self._clock(),
        )

    async def _record_results(self, results: Sequence[_Result]) -> None:
        await _DELIVERED.record(
            self._database, [(message, {}) for message, problem in results if problem is None]
        )
        failed = [(message, problem) for message, problem in results if problem is not None]
        for message, problem in failed:
            _log.info(
                "messages.retry_scheduled",
                message_id=ids.encode(ids.MESSAGE, message.id),
                attempts=message.attempts,
                problem=problem,
            )
        now = self._clock()
        await _RETRY.record(
            self._database,
            [
                (message, {"retry_at": now + compute_backoff(message.attempts)})
                for message, _ in failed
            ],
        )

    async def post(self, message: LeasedMessage) -> str | None:
        """Post the message; return None on success, else the exception's name or the status.

        Raises no exception, because a batch's results are recorded together.
        """
        try:
            response = await self._client.post(
                self._url, content=self._encode_body(message), headers=self._build_headers(message)
            )
        except Exception as error:
            return type(error).__name__
        status = response.status_code
        return None if 200 <= status < 300 else f"status {status}"

    def _encode_body(self, message: LeasedMessage) -> bytes:
        button = {} if message.button is None else {"button": message.button}
        return msgspec.json.encode(
            {
                "to": message.recipient,
                "template": message.template,
                "language": message.language,
                "parameters": _open_parameters(self._vault, message.id, message.parameters),
                **button,
            }
        )

    def _build_headers(self, message: LeasedMessage) -> dict[str, str]:
        timestamp = str(int(self._clock().timestamp()))
        return {
            "Content-Type": "application/json",
            "Idempotency-Key": ids.encode(ids.MESSAGE, message.id),
            "X-Service-Name": SERVICE_NAME,
            "X-Service-Timestamp": timestamp,
            "X-Service-Signature": self._sign(timestamp),
        }

    def _sign(self, timestamp: str) -> str:
        """Sign a request. The signature does not cover the body, so it is valid for a second."""
        if self._signature[0] != timestamp:
            secret = (self._secret or "").encode()
            path = urlsplit(self._url).path
            signature = signing.sign_service(secret, "POST", path, b"", timestamp)
            self._signature = (timestamp, signature)
        return self._signature[1]


def build_seal_context(message_id: int) -> bytes:
    """Return the vault context that binds sealed parameters to their message."""
    return b"message %d" % message_id


def _open_parameters(vault: Vault, message_id: int, sealed: bytes) -> list[str]:
    return msgspec.json.decode(vault.open(sealed, build_seal_context(message_id)), type=list[str])
