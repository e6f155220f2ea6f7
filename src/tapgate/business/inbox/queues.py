"""Work queues: what waits for staff. A new queue is one declaration.

Counts in the navigation, the list of all work and who sees it follow from it.
"""

from typing import Final

import msgspec

from tapgate.business.agents.float_requests.queries import WAITS_FOR_FINANCE
from tapgate.business.agents.queries import HAS_LOW_FLOAT
from tapgate.events.webhooks.queries import IS_FAILING
from tapgate_client import ids
from tapgate_client.schemas.work_queues import WorkQueueName

#: The caller's values, as a table that queries can refer to: `caller.admin_id`.
CALLER: Final = """caller AS (SELECT $1::bigint AS admin_id, $2::text AS role,
    $3::bigint AS low_float, $4::timestamptz AS now)"""


class WorkQueue(msgspec.Struct, frozen=True, kw_only=True):
    """Work queue. The fields after `source` are SQL expressions over it.

    `source` can also refer to the table `caller`. `order` must be that of an index, because only
    the first rows are read.
    """

    name: WorkQueueName
    #: The endpoint that lists the queue, or with which its items are done. Its callers see the
    #: queue.
    endpoint: str
    #: Prefix of the item IDs.
    id_prefix: str
    source: str
    condition: str
    order: str
    id: str
    #: Since when the item waits.
    since: str = "NULL::timestamptz"
    #: When the item must be done, for queues whose items have a deadline.
    due: str = "NULL::timestamptz"
    #: 0, or 1 for high and 2 for critical.
    urgency: str = "0"
    #: The person or thing that the item is about. NULL hides a restricted subscriber.
    subject: str = "NULL::text"
    #: What happened, in a word or a summary.
    detail: str = "NULL::text"
    #: In minor units.
    amount: str = "NULL::bigint"
    #: The admin who handles the item.
    assignee: str = "NULL::bigint"
    #: Whether the items depend on the caller, so that counts cannot be shared.
    is_personal: bool = False
    #: Whether no index has what waits, so that counts must be read rarely.
    reads_whole_table: bool = False

    @property
    def sql(self) -> str:
        """Query for what waits, in the order of the queue."""
        return f"""SELECT '{self.name}' AS queue, {self.id} AS id, {self.since} AS since,
            {self.due} AS due_at, {self.urgency} AS urgency, {self.subject} AS subject,
            {self.detail} AS detail,
            {self.amount} AS amount, {self.assignee} AS assignee
            FROM caller CROSS JOIN {self.source}
            WHERE {self.condition} ORDER BY {self.order}"""


_CUSTOMER: Final = """CASE WHEN s.restricted THEN NULL
    ELSE concat_ws(' ', s.first_name, s.last_name) END"""
_SEVERITY: Final = "CASE alerts.severity WHEN 'CRITICAL' THEN 2 WHEN 'HIGH' THEN 1 ELSE 0 END"

QUEUES: Final = (
    WorkQueue(
        name=WorkQueueName.APPROVALS,
        endpoint="GET /api/v1/approvals",
        id_prefix=ids.APPROVAL,
        source="approvals JOIN admins maker ON maker.id = approvals.maker_id",
        condition="""approvals.status = 'pending' AND approvals.expires_at > caller.now
            AND caller.role = ANY (approvals.roles) AND approvals.maker_id <> caller.admin_id
            AND NOT EXISTS (SELECT FROM approval_decisions d
                WHERE d.approval_id = approvals.id AND d.admin_id = caller.admin_id)""",
        order="approvals.id",
        id="approvals.id",
        since="approvals.created_at",
        due="approvals.expires_at",
        urgency="(approvals.expires_at < caller.now + interval '4 hours')::int",
        subject="maker.name",
        detail="approvals.summary",
        amount="approvals.amount",
        is_personal=True,
    ),
    WorkQueue(
        name=WorkQueueName.HELD_PAYMENTS,
        endpoint="GET /api/v1/compliance/alerts",
        id_prefix=ids.ALERT,
        source="""alerts JOIN transactions t ON t.id = alerts.transaction_id
            LEFT JOIN subscribers s ON s.id = alerts.subscriber_id""",
        condition="alerts.status IN ('open', 'investigating') AND alerts.review",
        order="alerts.id",
        id="alerts.id",
        since="alerts.created_at",
        urgency=f"greatest(1, {_SEVERITY})",
        subject=_CUSTOMER,
        detail="alerts.alert_type",
        amount="t.amount",
        assignee="alerts.assignee",
    ),
    WorkQueue(
        name=WorkQueueName.RECALLS,
        endpoint="GET /api/v1/recalls",
        id_prefix=ids.RECALL,
        source="""recalls JOIN accounts sender ON sender.id = recalls.sender_account
            LEFT JOIN subscribers s ON s.id = sender.owner_id""",
        condition="recalls.status = 'open'",
        order="recalls.expires_at, recalls.id",
        id="recalls.id",
        since="recalls.created_at",
        due="recalls.expires_at",
        urgency="(recalls.expires_at < caller.now + interval '4 hours')::int",
        subject=_CUSTOMER,
        amount="recalls.held_amount",
    ),
    WorkQueue(
        name=WorkQueueName.ALERTS,
        endpoint="GET /api/v1/compliance/alerts",
        id_prefix=ids.ALERT,
        source="alerts LEFT JOIN subscribers s ON s.id = alerts.subscriber_id",
        condition="alerts.status = 'open' AND NOT alerts.review",
        order="alerts.id",
        id="alerts.id",
        since="alerts.created_at",
        urgency=_SEVERITY,
        subject=_CUSTOMER,
        detail="alerts.alert_type",
        assignee="alerts.assignee",
    ),
    WorkQueue(
        name=WorkQueueName.PAYOUTS,
        endpoint="GET /api/v1/payouts",
        id_prefix=ids.PAYOUT,
        source="payouts JOIN accounts owner ON owner.id = payouts.account_id",
        condition="payouts.status = 'requested'",
        order="payouts.id",
        id="payouts.id",
        since="payouts.created_at",
        subject="owner.holder_name",
        detail="payouts.reference",
        amount="payouts.amount",
    ),
    WorkQueue(
        name=WorkQueueName.SUPPORT_REQUESTS,
        endpoint="GET /api/v1/support/requests",
        id_prefix=ids.SUPPORT_REQUEST,
        source="support_requests r LEFT JOIN subscribers s ON s.id = r.subscriber_id",
        condition="r.status = 'open'",
        order="r.id",
        id="r.id",
        since="r.created_at",
        urgency="CASE r.priority WHEN 'urgent' THEN 2 ELSE 0 END",
        subject=f"""CASE WHEN r.owner_id IS NOT NULL
                THEN (SELECT holder_name FROM accounts a WHERE a.owner_id = r.owner_id LIMIT 1)
            WHEN r.subscriber_id IS NULL THEN r.phone_number ELSE {_CUSTOMER} END""",
        assignee="r.assignee",
    ),
    WorkQueue(
        name=WorkQueueName.KYC_REVIEWS,
        endpoint="GET /api/v1/kyc-reviews",
        id_prefix=ids.SUBSCRIBER,
        source="""subscribers s LEFT JOIN kyc_assignments assignment
            ON assignment.subscriber_id = s.id""",
        condition="""s.kyc_status = 'PENDING' AND s.kyc_pending_since IS NOT NULL
            AND NOT s.restricted""",
        order="s.kyc_pending_since, s.id",
        id="s.id",
        since="s.kyc_pending_since",
        subject=_CUSTOMER,
        assignee="assignment.assignee",
    ),
    WorkQueue(
        name=WorkQueueName.DISPUTES,
        endpoint="GET /api/v1/disputes",
        id_prefix=ids.DISPUTE,
        source="""disputes d JOIN accounts merchant
            ON merchant.owner_id = d.processor_id AND merchant.kind = 'settlement'""",
        condition="d.status IN ('open', 'answered')",
        order="(d.status = 'open' AND d.due_at <= caller.now) DESC, d.id",
        id="d.id",
        since="d.created_at",
        due="d.due_at",
        urgency="(d.status = 'open' AND d.due_at <= caller.now)::int",
        subject="merchant.public_name",
        detail="d.reason",
        amount="d.amount",
    ),
    WorkQueue(
        name=WorkQueueName.FLOAT_REQUESTS,
        endpoint="POST /api/v1/float-requests/{id}/fund",
        id_prefix=ids.FLOAT_REQUEST,
        source="float_requests f JOIN agents agent ON agent.id = f.agent_id"
        " JOIN accounts a ON a.id = agent.account_id",
        condition=WAITS_FOR_FINANCE.format("caller.now"),
        order="f.finance_at, f.id",
        id="f.id",
        since="f.finance_at",
        urgency="CASE WHEN a.balance <= 0 THEN 1 ELSE 0 END",
        subject="a.public_name",
        detail="f.note",
        amount="f.amount",
    ),
    WorkQueue(
        name=WorkQueueName.LOW_FLOAT,
        endpoint="GET /api/v1/agents",
        id_prefix=ids.AGENT,
        source="agents JOIN accounts a ON a.id = agents.account_id",
        condition=HAS_LOW_FLOAT.format("caller.low_float"),
        order="a.balance, agents.id",
        id="agents.id",
        urgency="CASE WHEN a.balance <= 0 THEN 1 ELSE 0 END",
        subject="coalesce(agents.business_name, agents.phone_number)",
        amount="a.balance",
        reads_whole_table=True,
    ),
    WorkQueue(
        name=WorkQueueName.FAILING_WEBHOOKS,
        endpoint="GET /api/v1/admin/webhook-endpoints",
        id_prefix=ids.WEBHOOK_ENDPOINT,
        source="webhook_endpoints w",
        condition=f"w.deleted_at IS NULL AND {IS_FAILING}",
        order="since",
        id="w.id",
        since="coalesce(w.failing_since, w.status_changed_at)",
        urgency="CASE WHEN w.status = 'disabled' THEN 1 ELSE 0 END",
        subject="w.url",
    ),
)
