"""Records related to a detail page's subject."""

import asyncio
from collections.abc import Awaitable
from typing import Any, Final

from tapgate.sites.console.page_request import PageRequest

RECENT_LIMIT: Final = 10
MAX_RULES: Final = 100
MAX_ADMINS: Final = 100
_MAX_ACCOUNTS: Final = 100
#: Characters of an account number that are shown where the number is not the subject.
_SHOWN_DIGITS: Final = 4


async def gather_by_name(**parts: Awaitable[Any]) -> dict[str, Any]:
    """Load the parts of a page concurrently and return them by name, for its template."""
    return dict(zip(parts, await asyncio.gather(*parts.values()), strict=True))


def get_history(request: PageRequest, user_id: str, limit: int = RECENT_LIMIT) -> Awaitable[Any]:
    """Return an account holder's newest transactions."""
    return request.get("/api/v1/transactions", {"user_id": user_id, "limit": limit})


def get_audit(
    request: PageRequest, resource_id: str, limit: int = RECENT_LIMIT, **filters: str
) -> Awaitable[Any]:
    """Return a resource's newest audit entries, or None if the role has no access."""
    query: dict[str, str | int] = {**filters, "resource_id": resource_id, "limit": limit}
    return request.get_if_allowed("/api/v1/audit/logs", query)


def get_alerts(request: PageRequest, **filters: str | int) -> Awaitable[Any]:
    """Return the newest alerts that match, or None if the role has no access."""
    return request.get_if_allowed("/api/v1/compliance/alerts", filters)


async def get_rules(request: PageRequest) -> dict[str, Any]:
    """Return the compliance rules by ID, for alert names; none without access."""
    rules = await request.get_if_allowed("/api/v1/compliance/rules", {"limit": MAX_RULES})
    return {} if rules is None else {rule["id"]: rule for rule in rules["data"]}


async def get_last_code(request: PageRequest, path: str, id: str, **filters: str) -> Any:
    """Return the message with the newest one-time code to a record's phone, or None."""
    messages = await request.get(f"{path}/messages", {**filters, "limit": 1}, id=id)
    return next(iter(messages["data"]), None)


async def get_admin_names(request: PageRequest) -> dict[str, str]:
    """Return the names of administrators by ID; none without access to their list."""
    found = await request.get_if_allowed("/api/v1/admin/users", {"limit": MAX_ADMINS})
    return {} if found is None else {admin["id"]: admin["name"] for admin in found["data"]}


def name_account(account: dict[str, Any]) -> str:
    """Return a bank account's bank and the end of its number."""
    bank = account["bank_name"] or account["bank_code"]
    return f"{bank} ••••{account['number'][-_SHOWN_DIGITS:]}"


async def get_account_names(request: PageRequest, **filters: str) -> dict[str, str]:
    """Return bank account names by ID; none without access to their list."""
    query: dict[str, str | int] = {**filters, "limit": _MAX_ACCOUNTS}
    found = await request.get_if_allowed("/api/v1/bank-accounts", query)
    return {} if found is None else {item["id"]: name_account(item) for item in found["data"]}
