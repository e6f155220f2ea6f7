"""One-time codes sent to a subscriber's phone, and their redemption."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from tapgate.api.request_context import RequestContext
from tapgate.auth import one_time_codes
from tapgate.auth.one_time_codes import CodeRequest
from tapgate.errors import ApiError, Code
from tapgate.notifications.messages import enqueue_message
from tapgate.subscribers.audit_trail import record_audit_entry
from tapgate.subscribers.model import Subscriber

ONE_TIME_CODE_TEMPLATE = "one_time_code"


async def send(
    tx: asyncpg.Connection,
    request: RequestContext,
    subscriber: Subscriber,
    code_request: CodeRequest,
) -> None:
    now = request.services.clock()
    code = await one_time_codes.issue(
        tx, request.services.vault, code_request, subscriber.phone_number, now
    )
    await enqueue_message(
        tx,
        request.services.vault,
        to=subscriber.phone_number,
        template=ONE_TIME_CODE_TEMPLATE,
        parameters=[code],
        expires_at=now + one_time_codes.CODE_LIFETIME,
    )


@asynccontextmanager
async def redeem(
    request: RequestContext, code_request: CodeRequest, code: str, action: str
) -> AsyncIterator[asyncpg.Connection]:
    """Redeem a code and yield the database transaction for the action that it authorizes.

    An invalid code raises `INVALID_OTP` before the block runs, and the failure is recorded in the
    audit log.
    """
    services = request.services
    try:
        async with one_time_codes.redeem(
            services.transaction, services.vault, code_request, code, services.clock()
        ) as tx:
            yield tx
    except ApiError as error:
        if error.code == Code.INVALID_OTP:
            async with services.transaction() as tx:
                await record_audit_entry(
                    tx,
                    request,
                    code_request.subscriber_id,
                    action,
                    result="failure",
                    reason=error.code,
                )
        raise
