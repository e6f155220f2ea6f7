"""Restricted subscribers: who may see and change them, and how an admin gets to.

They are closed to API keys always, and to an admin until that admin has verified a code that was
sent to the subscriber's phone. Services, terminals and partners are not touched.
"""

from datetime import datetime

import asyncpg

from tapgate.credentials.principals import Principal
from tapgate.edge.call import Call
from tapgate.errors import ApiError, Code
from tapgate.store.conditions import Conditions
from tapgate.store.database import Database
from tapgate.subscribers.model import Subscriber, require_not_closed


async def require_open(
    reader: Database | asyncpg.Connection, call: Call, subscriber_id: int, *, restricted: bool
) -> None:
    """Refuse a caller to whom this subscriber is closed."""
    if not restricted:
        return
    match call.principal.kind:
        case "api_key":
            raise ApiError(Code.OTP_REQUIRED, "Restricted subscribers are closed to API keys")
        case "admin":
            if not await _has_access(reader, call, subscriber_id):
                raise ApiError(
                    Code.OTP_REQUIRED, "Verify a code sent to the subscriber's phone first"
                )


async def require_changeable(
    reader: Database | asyncpg.Connection, call: Call, subscriber: Subscriber
) -> None:
    """Refuse to change whoever is closed to the caller, or closed for good."""
    await require_open(reader, call, subscriber.id, restricted=subscriber.restricted)
    require_not_closed(subscriber)


async def _has_access(
    reader: Database | asyncpg.Connection, call: Call, subscriber_id: int
) -> bool:
    found: bool = await reader.fetchval(
        """SELECT EXISTS (SELECT FROM restricted_access
                          WHERE admin_id = $1 AND subscriber_id = $2 AND expires_at > $3)""",
        call.principal.admin_id,
        subscriber_id,
        call.services.clock(),
    )
    return found


def show_only_open(conditions: Conditions, caller: Principal, now: datetime) -> None:
    """Leave out of a list over `subscribers s` whoever is closed to the caller.

    What belongs to no subscriber, in a list that joins them from the left, stays in.
    """
    match caller.kind:
        case "api_key":
            conditions.add("s.restricted IS NOT TRUE")
        case "admin":
            conditions.add(
                f"""(s.restricted IS NOT TRUE OR EXISTS (
                    SELECT FROM restricted_access access
                    WHERE access.subscriber_id = s.id
                      AND access.admin_id = {conditions.bind(caller.admin_id)}
                      AND access.expires_at > {conditions.bind(now)}))"""
            )
