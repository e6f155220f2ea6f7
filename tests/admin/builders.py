"""Constants and types shared by admin tests."""

from collections.abc import Awaitable, Callable
from typing import Any

EMAIL = "ada@example.com"
PASSWORD = "correct horse battery"

Headers = dict[str, str]
LogIn = Callable[..., Awaitable[Headers]]
ListAuditEntries = Callable[..., Awaitable[list[dict[str, Any]]]]
