"""Approval rules, held requests and decisions, over HTTP."""

from typing import Any

import httpx2

from harness import BearerAuth, Harness
from tapgate import ids

RULES_URL = "/api/v1/admin/approval-rules"
APPROVALS_URL = "/api/v1/approvals"


def build_rule(operation: str, **fields: Any) -> dict[str, Any]:
    return {
        "operation": operation,
        "roles": ["system_admin", "finance_user"],
        "approvers": 1,
        "expires_in": 3600,
        **fields,
    }


async def set_rules(harness: Harness, *rules: dict[str, Any]) -> None:
    """Replace the rules. None must exist."""
    response = await harness.put(RULES_URL, json={"data": rules}, auth=await harness.create_admin())
    assert response.status_code == 200, response.text


def require_held(response: httpx2.Response) -> dict[str, Any]:
    """Return the approval in the response to a held request."""
    assert response.status_code == 202, response.text
    approval: dict[str, Any] = response.json()["approval"]
    assert approval["status"] == "pending"
    return approval


async def decide(
    harness: Harness, approval: dict[str, Any], verb: str, auth: BearerAuth, **body: Any
) -> httpx2.Response:
    url = f"{APPROVALS_URL}/{approval['id']}/{verb}"
    return await harness.post(url, json=body or None, auth=auth)


async def approve(
    harness: Harness, approval: dict[str, Any], auth: BearerAuth | None = None
) -> dict[str, Any]:
    """Approve a request, as a new finance_user unless given, and return the approval."""
    approver = auth or await harness.create_admin("F")
    response = await decide(harness, approval, "approve", approver)
    assert response.status_code == 200, response.text
    return dict(response.json())


async def get_approval(
    harness: Harness, approval: dict[str, Any], auth: BearerAuth
) -> dict[str, Any]:
    response = await harness.get(f"{APPROVALS_URL}/{approval['id']}", auth=auth)
    assert response.status_code == 200, response.text
    return dict(response.json())


async def set_email(harness: Harness, admin: BearerAuth, email: str) -> None:
    await harness.database.execute(
        "UPDATE admins SET email = $2 WHERE id = $1", ids.decode(ids.ADMIN, admin.id), email
    )
