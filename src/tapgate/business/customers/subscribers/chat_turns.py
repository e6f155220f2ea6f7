"""Subscribers' chat turns, as reported by the messenger."""

from datetime import timedelta
from typing import Final

import asyncpg

from tapgate.core.id_generator import get_time
from tapgate.http.api.access import Access
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate.runtime.store.database import Database
from tapgate_client import ids
from tapgate_client.schemas.chat import (
    ChatTurn,
    ChatTurns,
    ReportChatTurnsResponse,
    UnavailableService,
)

endpoints = Endpoints("Messages", objects=ObjectAccess.ANY, owners=NEVER)

_UNAVAILABLE: Final = frozenset(UnavailableService)
#: An ID contains the start of its millisecond.
_MILLISECOND: Final = timedelta(milliseconds=1)

#: A number's turns from before the subscriber had it belong to another person.
_INSERT_SQL: Final = """
    INSERT INTO chat_turns
        (id, subscriber_id, channel, input, command, outcome, error_code, replies)
    SELECT turn.id, s.id, turn.channel, turn.input, turn.command, turn.outcome, turn.error_code,
           turn.replies
    FROM unnest($1::bigint[], $2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::text[],
                $7::text[], $8::text[], $9::smallint[])
         AS turn (id, ended_at, phone_number, channel, input, command, outcome, error_code, replies)
    JOIN subscribers s ON s.phone_number = turn.phone_number
     AND coalesce(s.phone_number_changed_at, s.created_at) < turn.ended_at
    ORDER BY turn.id
    ON CONFLICT (id) DO NOTHING RETURNING command"""
_LIST_SQL: Final = """
    SELECT id, channel, input, command, outcome, error_code, replies FROM chat_turns
    WHERE subscriber_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3"""


@endpoints.post("/api/v1/chat/turns", access=Access(service=True), effect="sets")
async def report_chat_turns(request: RequestContext, body: ChatTurns) -> ReportChatTurnsResponse:
    """Report chat turns.

    The messenger reports each turn by a person whose phone number it knows. A turn has no text,
    amount or recipient. Turns from numbers without a subscriber are skipped, and a turn that is
    reported again is stored once. `stored` is the number of turns that were stored.
    """
    commands = await _store(request.services.database, body.data)
    for command in commands:
        if command in _UNAVAILABLE:
            request.services.event_counters.count_unavailable_service(UnavailableService(command))
    return ReportChatTurnsResponse(stored=len(commands))


async def list_turns(
    database: Database, subscriber_id: int, *, before: int, limit: int
) -> list[asyncpg.Record]:
    """Return a subscriber's newest turns before an ID."""
    return await database.fetch(_LIST_SQL, subscriber_id, before, limit)


async def _store(database: Database, turns: list[ChatTurn]) -> list[str | None]:
    """Store the turns, and return the commands of those that are new."""
    turn_ids = [ids.decode(ids.CHAT_TURN, turn.turn_id) or 0 for turn in turns]
    rows = await database.fetch(
        _INSERT_SQL,
        turn_ids,
        [get_time(turn_id) + _MILLISECOND for turn_id in turn_ids],
        [turn.phone_number for turn in turns],
        [turn.channel for turn in turns],
        [turn.input for turn in turns],
        [turn.command for turn in turns],
        [turn.outcome for turn in turns],
        [turn.error_code for turn in turns],
        [turn.replies for turn in turns],
    )
    return [row["command"] for row in rows]
