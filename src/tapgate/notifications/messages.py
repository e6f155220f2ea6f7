"""Outbox of messages to phones, sent through the messenger.

A message is a row written in the database transaction of the change that it reports. The sender
posts a message repeatedly until it is accepted by the messenger or expires. The message id is the
idempotency key, with which the messenger discards duplicates. Parameters may contain one-time
codes. They are sealed while the message is pending, removed when it is accepted or expires, and
never logged.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Final, NoReturn
from urllib.parse import urlsplit

import httpx2
import msgspec
import structlog

from tapgate import ids, signing
from tapgate.api.services import Services
from tapgate.runtime.background import run_periodically
from tapgate.store.database import Database
from tapgate.store.transaction import Transaction
from tapgate.store.work_queue import ResultUpdate, WorkQueue, compute_backoff
from tapgate.tls import get_tls_context_for
from tapgate.vault import Vault

#: Name under which the gateway signs requests to other services.
SERVICE_NAME = "gateway"
POLL_INTERVAL_SECONDS = 0.5

_MESSAGES_PATH = "/api/v1/messages/template"
_BATCH_SIZE = 20
_REQUEST_TIMEOUT_SECONDS = 10.0

_log = structlog.get_logger()


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """Message to enqueue: recipient, template and parameters."""

    to: str
    template: str
    parameters: list[str]
    language: str = "en"
    expires_at: datetime

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


class _ClaimedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """Message leased to this process."""

    id: int
    recipient: str
    template: str
    language: str
    parameters: bytes
    attempts: int


_QUEUE = WorkQueue("messages", ", ".join(_ClaimedMessage.__struct_fields__))
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
) -> None:
    """Enqueue a message. The message sender sends it after `tx` commits."""
    message = Message(
        to=to, template=template, parameters=parameters, language=language, expires_at=expires_at
    )
    await enqueue_messages(tx, vault, [message])


async def enqueue_messages(tx: Transaction, vault: Vault, messages: Sequence[Message]) -> None:
    """Enqueue several messages in one statement."""
    if not messages:
        return
    messages_with_ids = [(tx.new_id(), message) for message in messages]
    await tx.execute(
        """INSERT INTO messages (id, recipient, template, language, parameters, expires_at,
                                 next_attempt_at, created_at)
           SELECT new.*, $7::timestamptz, $7::timestamptz
           FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bytea[],
                       $6::timestamptz[]) AS new""",
        [message_id for message_id, _ in messages_with_ids],
        [message.to for message in messages],
        [message.template for message in messages],
        [message.language for message in messages],
        [_seal_parameters(vault, *pair) for pair in messages_with_ids],
        [message.expires_at for message in messages],
        tx.now(),
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

    def __init__(self, services: Services) -> None:
        self._database = services.database
        self._vault = services.vault
        self._clock = services.clock
        self._url = services.settings.messenger_url + _MESSAGES_PATH
        self._secret = services.settings.service_secrets.get(SERVICE_NAME)

    async def run(self) -> NoReturn:
        """Send messages until canceled. Continue after outages of the database or messenger."""
        if self._secret is None:
            _log.warning("messages.sender_disabled", missing_service_secret=SERVICE_NAME)
        async with httpx2.AsyncClient(
            timeout=_REQUEST_TIMEOUT_SECONDS,
            trust_env=False,
            verify=get_tls_context_for(self._url),
        ) as client:
            await run_periodically(
                partial(self.send_due, client), every=POLL_INTERVAL_SECONDS, name="messages.sender"
            )

    async def send_due(self, client: httpx2.AsyncClient) -> None:
        """Expire messages past their deadline, then send due messages in batches.

        Stops after a batch in which every message fails. Without a service secret, nothing is sent.
        """
        await self._expire()
        while self._secret is not None:
            rows = await _QUEUE.claim(self._database, now=self._clock(), limit=_BATCH_SIZE)
            claimed = [_ClaimedMessage(**row) for row in rows]
            problems = await asyncio.gather(*(self._post(client, claim) for claim in claimed))
            await self._record_results(list(zip(claimed, problems, strict=True)))
            if len(claimed) < _BATCH_SIZE or None not in problems:
                return  # no more due messages, or the messenger is probably down

    async def _expire(self) -> None:
        await self._database.execute(
            """UPDATE messages SET status = 'expired', parameters = NULL
               WHERE status = 'pending' AND expires_at <= $1""",
            self._clock(),
        )

    async def _record_results(self, results: Sequence[tuple[_ClaimedMessage, str | None]]) -> None:
        await _DELIVERED.record(
            self._database, [(claim, {}) for claim, problem in results if problem is None]
        )
        failed = [(claim, problem) for claim, problem in results if problem is not None]
        for claim, problem in failed:
            _log.info(
                "messages.retry_scheduled",
                message_id=ids.encode(ids.MESSAGE, claim.id),
                attempts=claim.attempts,
                problem=problem,
            )
        now = self._clock()
        await _RETRY.record(
            self._database,
            [(claim, {"retry_at": now + compute_backoff(claim.attempts)}) for claim, _ in failed],
        )

    async def _post(self, client: httpx2.AsyncClient, claim: _ClaimedMessage) -> str | None:
        """Post the message; return None on success, else the exception's name or the status.

        Raises no exception, because the results of a batch are recorded together.
        """
        try:
            body = self._encode_body(claim)
            async with asyncio.timeout(_REQUEST_TIMEOUT_SECONDS):
                response = await client.post(
                    self._url, content=body, headers=self._build_headers(claim)
                )
        except Exception as error:
            return type(error).__name__
        return None if response.is_success else f"status {response.status_code}"

    def _encode_body(self, claim: _ClaimedMessage) -> bytes:
        return msgspec.json.encode(
            {
                "to": claim.recipient,
                "template": claim.template,
                "language": claim.language,
                "parameters": _open_parameters(self._vault, claim.id, claim.parameters),
            }
        )

    def _build_headers(self, claim: _ClaimedMessage) -> dict[str, str]:
        timestamp = str(int(self._clock().timestamp()))
        secret = (self._secret or "").encode()
        path = urlsplit(self._url).path
        return {
            "Content-Type": "application/json",
            "Idempotency-Key": ids.encode(ids.MESSAGE, claim.id),
            "X-Service-Name": SERVICE_NAME,
            "X-Service-Timestamp": timestamp,
            "X-Service-Signature": signing.sign_service(secret, "POST", path, b"", timestamp),
        }


def _build_seal_context(message_id: int) -> bytes:
    """Return the vault context that binds sealed parameters to their message."""
    return b"message %d" % message_id


def _seal_parameters(vault: Vault, message_id: int, message: Message) -> bytes:
    return vault.seal(msgspec.json.encode(message.parameters), _build_seal_context(message_id))


def _open_parameters(vault: Vault, message_id: int, sealed: bytes) -> list[str]:
    return msgspec.json.decode(vault.open(sealed, _build_seal_context(message_id)), type=list[str])
