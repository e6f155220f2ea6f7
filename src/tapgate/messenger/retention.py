"""Messenger table retention: what is deleted when, and what is kept and why."""

from datetime import timedelta
from typing import Final

from tapgate.runtime.retention import Retention

RETENTION: Final = (
    # Includes waiting messages: a running sender would have failed them after a day.
    Retention("messenger.outbox", "messages to phones", "created_at", timedelta(days=7)),
    # Longer than the outbox: without its status rows, a message would be listed as only sent.
    Retention(
        "messenger.statuses", "delivery statuses of messages", "updated_at", timedelta(days=8)
    ),
    # Not reported: the gateway was unreachable, or has an older release.
    Retention(
        "messenger.turns",
        "chat turns that were not reported to the gateway",
        "ended_at",
        timedelta(days=7),
    ),
    # The provider redelivers for days, and duplicates must be recognized during all of that time.
    Retention(
        "messenger.received",
        "processed messages from phones",
        "received_at",
        timedelta(days=30),
        condition="status <> 'waiting'",
    ),
    # Deleted earlier, because a message flood leaves many throttled rows.
    Retention(
        "messenger.received",
        "throttled messages from phones",
        "received_at",
        timedelta(days=2),
        condition="status = 'throttled'",
    ),
    # Kept past expiry, so that the error for an expired form is in the person's language.
    Retention("messenger.forms", "PIN forms", "expires_at", timedelta(days=1)),
    Retention("messenger.images", "photos without a document type", "expires_at", timedelta(0)),
    Retention("messenger.codes", "one-time codes", "expires_at", timedelta(0)),
    Retention("messenger.rates", "message counts per person", "since", timedelta(hours=1)),
    # Kept long past expiry, because `heard_until` identifies messages that arrive late.
    Retention(
        "messenger.conversations",
        "expired conversations",
        "expires_at",
        timedelta(days=30),
        condition="(lease IS NULL OR leased_until < $1)",
    ),
    # Never saved: a process died during the conversation's first turn.
    Retention(
        "messenger.conversations",
        "conversations that were never saved",
        "leased_until",
        timedelta(days=1),
        condition="expires_at IS NULL",
    ),
    Retention(
        "messenger.conversations",
        "transcripts of expired conversations",
        "expires_at",
        timedelta(hours=1),
        condition="transcript IS NOT NULL",
        erase=("transcript",),
    ),
    # These rows hold only a language, which can be detected again. Without a conversation row, the
    # person has sent no message for at least 30 days.
    Retention(
        "messenger.people",
        "languages of people without anything else stored",
        "updated_at",
        timedelta(days=400),
        condition="""trusted AND phone IS NULL AND NOT EXISTS (
            SELECT FROM messenger.recipients r WHERE r.address = people.address)
            AND NOT EXISTS (
            SELECT FROM messenger.conversations c WHERE c.address = people.address)""",
    ),
)

#: Reason -> tables whose rows no job deletes.
KEPT: Final = {"At most 30 rows per person": ("messenger.recipients",)}
