"""Deletion of old rows and transcripts from the messenger's tables, mostly in small batches."""

from datetime import timedelta
from typing import Final, NamedTuple, NoReturn

from tapgate.runtime.background import run_periodically
from tapgate.runtime.store.database import Database
from tapgate_client.clock import Clock

BATCH_SIZE: Final = 1_000
_INTERVAL_SECONDS: Final = 600.0
#: Transcripts of expired conversations are not used anymore.
_TRANSCRIPT_MAX_AGE: Final = timedelta(hours=1)


class RetentionRule(NamedTuple):
    table: str
    key_column: str
    age_column: str
    max_age: timedelta
    condition: str = "true"


RETENTION_RULES: Final = (
    # Includes waiting messages: a running sender would have failed them after a day.
    RetentionRule("outbox", "id", "created_at", timedelta(days=7)),
    # Longer than the outbox: without its status rows, a message would be listed as only sent.
    RetentionRule("statuses", "channel_message_id", "updated_at", timedelta(days=8)),
    # Not reported while the gateway was unreachable, or is of an older release.
    RetentionRule("turns", "id", "ended_at", timedelta(days=7)),
    # The provider redelivers for days, and duplicates must be recognized during all of that time.
    RetentionRule(
        "received", "id", "received_at", timedelta(days=30), condition="status <> 'waiting'"
    ),
    # Deleted earlier, because a flood of messages leaves many throttled rows.
    RetentionRule(
        "received", "id", "received_at", timedelta(days=2), condition="status = 'throttled'"
    ),
    # Kept past expiry, so that the error for an expired form is in the person's language.
    RetentionRule("forms", "token_hash", "expires_at", timedelta(days=1)),
    RetentionRule("images", "id", "expires_at", timedelta(0)),
    RetentionRule("codes", "address", "expires_at", timedelta(0)),
    RetentionRule("rates", "address", "since", timedelta(hours=1)),
    # Kept long past expiry, because `heard_until` identifies messages that arrive late.
    RetentionRule(
        "conversations",
        "address",
        "expires_at",
        timedelta(days=30),
        condition="(lease IS NULL OR leased_until < $1)",
    ),
    # Never saved: a process died during the first turn of the conversation.
    RetentionRule(
        "conversations",
        "address",
        "leased_until",
        timedelta(days=1),
        condition="expires_at IS NULL",
    ),
    # These rows hold only a language, which can be detected again. Without a conversation row, the
    # person has sent no message for at least 30 days.
    RetentionRule(
        "people",
        "address",
        "updated_at",
        timedelta(days=400),
        condition="""trusted AND phone IS NULL AND NOT EXISTS (
            SELECT FROM messenger.recipients r WHERE r.address = people.address)
            AND NOT EXISTS (
            SELECT FROM messenger.conversations c WHERE c.address = people.address)""",
    ),
)


class Retention:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def run(self) -> NoReturn:
        await run_periodically(
            self.delete_expired, every=_INTERVAL_SECONDS, name="messenger.retention"
        )

    async def delete_expired(self) -> None:
        for rule in RETENTION_RULES:
            while await self._delete_batch(rule) == BATCH_SIZE:
                pass
        await self._database.execute(
            """UPDATE messenger.conversations SET transcript = NULL
               WHERE transcript IS NOT NULL AND expires_at < $1""",
            self._clock() - _TRANSCRIPT_MAX_AGE,
        )

    async def _delete_batch(self, rule: RetentionRule) -> int:
        table = f"messenger.{rule.table}"
        rows = await self._database.fetch(
            f"""DELETE FROM {table} WHERE {rule.key_column} = ANY (ARRAY(
                    SELECT {rule.key_column} FROM {table}
                    WHERE {rule.age_column} < $1 AND {rule.condition}
                    ORDER BY {rule.age_column} LIMIT {BATCH_SIZE} FOR UPDATE SKIP LOCKED))
                RETURNING true""",
            self._clock() - rule.max_age,
        )
        return len(rows)
