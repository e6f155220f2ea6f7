"""Approval records for admins, without personal data that is hidden from them."""

from collections.abc import Sequence
from itertools import chain

import msgspec

from tapgate.auth.disclosure import find_hidden_subjects
from tapgate.business.approvals import model, queries
from tapgate.business.approvals.model import Approval
from tapgate.http.api.request_context import RequestContext
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.schemas.approvals import ApprovalRecord


async def build(
    request: RequestContext, reader: Database | Transaction, approval: Approval
) -> ApprovalRecord:
    (record,) = await build_all(request, reader, [approval])
    return record


async def build_all(
    request: RequestContext, reader: Database | Transaction, approvals: Sequence[Approval]
) -> list[ApprovalRecord]:
    services, now = request.services, request.services.clock()
    decisions = await queries.load_decisions(reader, [approval.id for approval in approvals])
    subjects = {approval.id: model.list_subjects(approval) for approval in approvals}
    hidden = await find_hidden_subjects(
        reader, request.principal, now, set(chain(*subjects.values()))
    )
    built = [
        model.to_record(
            approval,
            decisions[approval.id],
            currency=services.settings.currency,
            now=now,
            masked=not hidden.isdisjoint(subjects[approval.id]),
        )
        for approval in approvals
    ]
    if request.principal.owner is None:
        return built
    # An owner's user does not learn which admins decide.
    return [msgspec.structs.replace(record, approvers=[], decisions=[]) for record in built]
