"""Admin, session and API key records."""

from tapgate.client.records.base import Record, SecretRecord


class Tokens(SecretRecord, frozen=True, kw_only=True):
    token: str
    refresh_token: str
    expires_in: int


class CurrentUser(Record, frozen=True, kw_only=True):
    """The authenticated admin."""

    id: str
    email: str
    name: str
    role: str
    created_at: str
    last_login_at: str | None


class Admin(Record, frozen=True, kw_only=True):
    id: str
    email: str
    name: str
    role: str
    created_at: str
    last_login_at: str | None
    status: str


class ApiKeyRecord(Record, frozen=True, kw_only=True):
    """An API key, without the key itself."""

    id: str
    name: str
    scopes: list[str]
    prefix: str
    rate_limit: int | None
    burst: int | None
    allowed_ips: list[str] | None
    expires_at: str | None
    last_used_at: str | None
    created_at: str


class ApiKeyWithSecret(SecretRecord, frozen=True, kw_only=True):
    """A new or rotated API key, including the key itself."""

    id: str
    name: str
    scopes: list[str]
    prefix: str
    rate_limit: int | None
    burst: int | None
    allowed_ips: list[str] | None
    expires_at: str | None
    last_used_at: str | None
    created_at: str
    key: str
