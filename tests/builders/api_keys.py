"""API keys and requests about them."""

from typing import Any

import httpx2

KEYS_URL = "/api/v1/admin/api-keys"
NEW_KEY: dict[str, Any] = {
    "name": "Shop",
    "scopes": ["payments:write", "balance:read"],
    "expires_at": "2999-01-31T12:00:00Z",
}


async def get_key_status(client: httpx2.AsyncClient, key: str) -> int:
    """Return 403 for a valid key, which never has access here, and 401 for an invalid one."""
    return (await client.get(KEYS_URL, headers={"Authorization": f"Bearer {key}"})).status_code
