"""Requests the payouts of schedules after a day is closed, once per day for all processes."""

from datetime import date, timedelta
from typing import Any, Final, NoReturn

import msgspec
import structlog

from tapgate.auth.principals import Principal
from tapgate.business.finance.day_close import queries as closed_days
from tapgate.business.finance.payouts import queries
from tapgate.business.finance.payouts.model import StoredSchedule
from tapgate.business.finance.payouts.requests import build_payout_command
from tapgate.business.payments.transactions.money_requests import MoneyResult, submit_request
from tapgate.http.api.guards import Description
from tapgate.http.api.request_context import GuardedRequest
from tapgate.http.api.services import Services
from tapgate.runtime.background import do_for_each, run_periodically
from tapgate_client import ids
from tapgate_client.errors import ApiError
from tapgate_client.schemas.admin import AdminRole
from tapgate_client.schemas.payouts import NewPayoutRequest, PayoutInterval

_INTERVAL_SECONDS: Final = 30.0
#: Idempotency key scope of all scheduled payouts, whoever has set the schedule.
_SCOPE: Final = "payout-schedule"
_SERVER_ERROR: Final = 500
_log = structlog.get_logger()


class ScheduledRequest(msgspec.Struct, GuardedRequest, kw_only=True):
    """Payout request of a schedule, made as the admin who has set the schedule."""

    services: Services
    caller: Principal
    request_id: str
    path: str = "/api/v1/payouts"
    proposed_amount: int | None = None
    description: Description | None = None
    ip: str = ""

    @property
    def idempotency_key(self) -> str | None:
        return None


class PayoutScheduleWorker:
    """Background worker. Every process runs it; idempotency keys make each payout once."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def run(self) -> NoReturn:
        await run_periodically(self.request_due, every=_INTERVAL_SECONDS, name="payout.schedules")

    async def request_due(self) -> None:
        """Request the payouts that the last closed day makes due."""
        database = self._services.database
        closed = await closed_days.find_latest_day(database)
        if closed is None:
            return
        schedules = await queries.list_due_schedules(database, closed.day)
        await do_for_each(schedules, lambda schedule: self._request_if_due(schedule, closed.day))

    async def _request_if_due(self, schedule: StoredSchedule, closed: date) -> None:
        day = find_due_day(schedule.interval, closed)
        if schedule.last_day is not None and day <= schedule.last_day:
            return
        if await self._request(schedule, day):
            await self._services.database.execute(
                "UPDATE payout_schedules SET last_day = $2 WHERE processor_id = $1",
                schedule.processor_id,
                day,
            )

    async def _request(self, schedule: StoredSchedule, day: date) -> bool:
        """Request one payout; return False if it must be tried again."""
        services = self._services
        owner_id = ids.encode(ids.PROCESSOR, schedule.processor_id)
        if not await self._has_enough(schedule):
            return True
        key = f"{owner_id}:{day}"
        request = ScheduledRequest(
            services=services, caller=_build_caller(schedule), request_id=key
        )
        body = NewPayoutRequest(owner_id=owner_id, request_id=key)

        async def handle() -> MoneyResult:
            command = await build_payout_command(request, body, minimum=schedule.minimum)
            return await submit_request(request, command)

        endpoint = services.guarded_endpoints["request_payout"]
        try:
            await services.run_guarded(endpoint, request, {"body": body}, handle)
        except ApiError as error:
            _log.info("payout.schedule_skipped", processor_id=owner_id, code=str(error.code))
            return error.status < _SERVER_ERROR
        return True

    async def _has_enough(self, schedule: StoredSchedule) -> bool:
        """Return whether the balance above the reserve is worth a request."""
        available: Any = await self._services.database.fetchval(
            "SELECT balance - held FROM accounts WHERE owner_id = $1", schedule.processor_id
        )
        payable = (available or 0) * (100 - schedule.reserve_percent) // 100
        return bool(payable >= max(schedule.minimum, 1))


def find_due_day(interval: str, closed: date) -> date:
    """Return the last day up to a closed day whose close makes a payout due."""
    if interval == PayoutInterval.WEEKLY:
        return closed - timedelta(days=(closed.weekday() + 1) % 7)
    return closed


def _build_caller(schedule: StoredSchedule) -> Principal:
    return Principal(
        kind="admin",
        id=ids.encode(ids.ADMIN, schedule.updated_by),
        name="Payout schedule",
        role=AdminRole.FINANCE_USER,
        admin_id=schedule.updated_by,
        owner_scope=_SCOPE,
    )
