"""Reports chat turns to the gateway, for the subscriber's timeline.

A turn is stored in the database transaction that saves its results, and removed when the gateway
has it. It contains no text, amount or recipient. Reports are sent at least once, and the gateway
stores a turn once.
"""

from typing import Any, Final, NamedTuple, NoReturn

import asyncpg
import structlog

from tapgate.messenger.conversation.state import EngineOutput
from tapgate.messenger.model import (
    Command,
    Event,
    FormClosed,
    FormSubmitted,
    GatewayUnreachable,
    ImageReceived,
    ImageRejected,
    OptionChosen,
    Person,
    RequestOutcome,
    RequestRejected,
    TextMessage,
)
from tapgate.messenger.services import Services
from tapgate.runtime.background import run_periodically
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.work_queue import LEASE_DURATION, WorkQueue
from tapgate_client import AsyncTapgateClient, TapgateError, ValidationError, ids
from tapgate_client.clock import Clock
from tapgate_client.schemas.chat import MAX_TURNS, ChatChannel, ChatInput, ChatOutcome, ChatTurn

_INTERVAL_SECONDS: Final = 1.0

_INPUTS: Final[dict[type[Any], ChatInput]] = {
    TextMessage: ChatInput.TEXT,
    OptionChosen: ChatInput.OPTION,
    FormSubmitted: ChatInput.FORM,
    FormClosed: ChatInput.FORM,
    ImageReceived: ChatInput.IMAGE,
    ImageRejected: ChatInput.IMAGE,
}
#: A failed report is retried when its lease expires.
_QUEUE: Final = WorkQueue(
    "messenger.turns",
    "id, phone, channel, input, command, outcome, error_code, replies",
    pending="",
    due="report_at",
    lease=LEASE_DURATION,
    counts_attempts=False,
)

_log = structlog.get_logger()


class TurnSummary(NamedTuple):
    """What the gateway stores about a turn."""

    channel: ChatChannel
    input: ChatInput
    command: Command | None
    outcome: ChatOutcome
    error_code: str | None = None
    replies: int = 0


def summarize(
    channel: ChatChannel,
    event: Event,
    output: EngineOutput,
    last: RequestOutcome | None,
    replies: int,
) -> TurnSummary | None:
    """Return a turn's summary from its event, last engine pass and last gateway request.

    The notice that a submitted form was closed has none: the submission was a separate turn.
    """
    if isinstance(event, FormClosed) and not replies:
        return None
    return TurnSummary(
        channel,
        _INPUTS.get(type(event), ChatInput.OTHER),
        output.command,
        _get_outcome(output, last),
        last.code if isinstance(last, RequestRejected) else None,
        replies,
    )


def _get_outcome(output: EngineOutput, last: RequestOutcome | None) -> ChatOutcome:
    if isinstance(last, GatewayUnreachable):
        return ChatOutcome.FAILED
    if isinstance(last, RequestRejected):
        return ChatOutcome.DECLINED
    if output.is_canceled:
        return ChatOutcome.CANCELLED
    is_open = output.conversation.command is not None
    return ChatOutcome.IN_PROGRESS if is_open else ChatOutcome.ANSWERED


async def enqueue(
    tx: asyncpg.Connection, services: Services, person: Person, turn: TurnSummary
) -> None:
    """Store a turn to report, unless it cannot be attributed to a subscriber.

    A person who is not trusted may not own the phone number's account.
    """
    if person.phone is None or not person.trusted:
        return
    await tx.execute(
        """INSERT INTO messenger.turns (id, phone, channel, input, command, outcome, error_code,
                                        replies, ended_at, report_at)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)""",
        services.new_id(),
        person.phone,
        *turn,
        services.clock(),
    )


class TurnReporter:
    def __init__(self, database: Database, gateway: AsyncTapgateClient, clock: Clock) -> None:
        self._database = database
        self._gateway = gateway
        self._clock = clock

    async def run(self) -> NoReturn:
        await run_periodically(self.report_due, every=_INTERVAL_SECONDS, name="messenger.turns")

    async def report_due(self) -> None:
        while await self._report_batch() == MAX_TURNS:
            pass

    async def _report_batch(self) -> int:
        rows = await _QUEUE.lease(self._database, now=self._clock(), limit=MAX_TURNS)
        if not rows:
            return 0
        try:
            await self._report(rows)
        except TapgateError as error:
            _log.info("turns.report_failed", error=type(error).__name__)
            return 0
        await self._database.execute(
            "DELETE FROM messenger.turns WHERE id = ANY ($1::bigint[])", [row["id"] for row in rows]
        )
        return len(rows)

    async def _report(self, rows: list[asyncpg.Record]) -> None:
        """Report turns, one by one if the gateway rejects them together."""
        try:
            await self._gateway.messages.report_chat_turns([_to_chat_turn(row) for row in rows])
        except ValidationError as error:
            if len(rows) == 1:  # a retry would be rejected again
                _log.warning("turns.report_rejected", turn_id=rows[0]["id"], code=error.code)
                return
            for row in rows:
                await self._report([row])


def _to_chat_turn(row: asyncpg.Record) -> ChatTurn:
    return ChatTurn(
        turn_id=ids.encode(ids.CHAT_TURN, row["id"]),
        phone_number=row["phone"],
        channel=row["channel"],
        input=row["input"],
        command=row["command"],
        outcome=row["outcome"],
        error_code=row["error_code"],
        replies=row["replies"],
    )
