"""Endpoint for the SMS provider's delivery reports."""

from typing import Annotated, ClassVar, Final, Literal

import msgspec

from tapgate.http.endpoint import Endpoints
from tapgate.messenger.outbox import sms_sender
from tapgate.messenger.routes.access import SMS_PROVIDER
from tapgate.messenger.web import RequestContext, SuccessStatus
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.messages import MessageStatus

endpoints: Final = Endpoints("Messages")


class SmsReport(msgspec.Struct, frozen=True, kw_only=True):
    EXAMPLE: ClassVar = {"id": ids.encode(ids.MESSAGE, 1 << 58), "status": "delivered"}

    id: Annotated[str, msgspec.Meta(description="The `id` under which the SMS was sent")]
    status: Literal["delivered", "failed"]


class SmsReportResponse(msgspec.Struct, frozen=True, kw_only=True):
    EXAMPLE: ClassVar = {"status": "success"}

    status: SuccessStatus


@endpoints.post(
    "/api/v1/messages/sms-status",
    access=SMS_PROVIDER,
    errors=(Code.VALIDATION_FAILED, Code.NOT_FOUND),
)
async def report_sms_status(request: RequestContext, body: SmsReport) -> SmsReportResponse:
    """Report whether an SMS was delivered.

    Reports may be repeated and come in any order: a delivered SMS stays delivered.
    """
    services = request.services
    outbox_id = ids.decode(ids.MESSAGE, body.id)
    is_known = outbox_id is not None and await sms_sender.record_report(
        services.database,
        outbox_id,
        MessageStatus(body.status),
        services.clock(),
        keep_content=not services.settings.is_production,
    )
    if not is_known:
        raise ApiError(Code.NOT_FOUND, "No SMS has this id")
    return SmsReportResponse(status="success")
