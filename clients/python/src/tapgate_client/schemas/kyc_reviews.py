"""KYC review queue requests and responses."""

from typing import Annotated

import msgspec

from tapgate_client import ids
from tapgate_client.schemas.assignees import AssigneeFilter
from tapgate_client.schemas.fields import IdRule
from tapgate_client.schemas.pagination import PageQuery
from tapgate_client.schemas.subscribers import KycDocumentType
from tapgate_client.schemas.values import AdminId, AdminName, FirstName, Id, LastName, PhoneNumber


class KycReviewFilters(PageQuery, kw_only=True):
    assignee: AssigneeFilter | None = None
    subscriber_id: Annotated[str, IdRule(ids.SUBSCRIBER)] | None = None


class KycReviewRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Subscriber who waits for a KYC decision."""

    subscriber_id: Id
    first_name: FirstName
    last_name: LastName
    phone_number: PhoneNumber
    kyc_level: int
    waiting_since: str
    assignee: AdminId | None
    assignee_name: AdminName | None
    #: Kinds of the documents that no decision covers yet.
    documents: list[KycDocumentType]
