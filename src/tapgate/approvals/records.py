"""Records of approvals for admins, without personal data that is hidden from them."""

from collections.abc import Sequence
from itertools import chain

from tapgate.api.services import Services
from tapgate.approvals import model, queries
from tapgate.approvals.model import Approval
from tapgate.auth.disclosure import find_hidden_subjects
from tapgate.auth.principals import Principal
from tapgate_client.schemas.approvals import ApprovalRecord


async def build(services: Services, principal: Principal, approval: Approval) -> ApprovalRecord:
    (record,) = await build_all(services, principal, [approval])
    return record


async def build_all(
    services: Services, principal: Principal, approvals: Sequence[Approval]
) -> list[ApprovalRecord]:
    decisions = await queries.load_decisions(
        services.database, [approval.id for approval in approvals]
    )
    subjects = {approval.id: model.list_subjects(approval) for approval in approvals}
    hidden = await find_hidden_subjects(
        services.database, principal, services.clock(), set(chain(*subjects.values()))
    )
    return [
        model.to_record(
            approval,
            decisions[approval.id],
            currency=services.settings.currency,
            now=services.clock(),
            masked=not hidden.isdisjoint(subjects[approval.id]),
        )
        for approval in approvals
    ]
