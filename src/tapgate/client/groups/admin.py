"""Admins, their sessions and the keys they give out."""

from collections.abc import Sequence

from tapgate.client.exchange import log_in, refresh
from tapgate.client.operation import (
    Group,
    Listing,
    M,
    Operation,
    act,
    delete,
    operation,
    put,
    read,
)
from tapgate.client.pages import listed, listing
from tapgate.client.records.admin import Admin as AdminRecord
from tapgate.client.records.admin import ApiKeyCreated, ApiKeyRecord, Me, Tokens
from tapgate.client.values import Moment, given, moment_or_none

_ADMIN = "/api/v1/admin"
_USERS = f"{_ADMIN}/users"
_API_KEYS = f"{_ADMIN}/api-keys"


class Admin(Group[M]):
    @operation
    def login(self, *, email: str, password: str) -> Operation[Tokens]:
        """For who keeps the tokens: a gateway with `Login` does this by itself."""
        return log_in(email, password)

    @operation
    def refresh(self, *, refresh_token: str) -> Operation[Tokens]:
        """A refresh token is good for one use; a second ends the session."""
        return refresh(refresh_token)

    @operation
    def logout(self) -> Operation[None]:
        return act(f"{_ADMIN}/logout", type(None))

    @operation
    def me(self) -> Operation[Me]:
        return read(f"{_ADMIN}/me", Me)

    @operation
    def create_user(
        self, *, email: str, password: str, name: str, role: str
    ) -> Operation[AdminRecord]:
        body = given(email=email, password=password, name=name, role=role)
        return act(_USERS, AdminRecord, body)

    @listing
    def list_users(self, *, limit: int | None = None) -> Listing[AdminRecord]:
        return listed(_USERS, AdminRecord, given(limit=limit))

    @operation
    def disable_user(self, id: str) -> Operation[AdminRecord]:
        return act(f"{_USERS}/{{id}}/disable", AdminRecord, id=id)

    @operation
    def enable_user(self, id: str) -> Operation[AdminRecord]:
        return act(f"{_USERS}/{{id}}/enable", AdminRecord, id=id)

    @operation
    def create_api_key(
        self,
        *,
        name: str,
        scopes: Sequence[str],
        rate_limit: int | None = None,
        burst: int | None = None,
        allowed_ips: Sequence[str] | None = None,
        expires_at: Moment | None = None,
    ) -> Operation[ApiKeyCreated]:
        """Create an API key; the key itself is in this response only."""
        body = given(
            name=name,
            scopes=scopes,
            rate_limit=rate_limit,
            burst=burst,
            allowed_ips=allowed_ips,
            expires_at=moment_or_none(expires_at),
        )
        return act(_API_KEYS, ApiKeyCreated, body)

    @operation
    def get_api_key(self, id: str) -> Operation[ApiKeyRecord]:
        return read(f"{_API_KEYS}/{{id}}", ApiKeyRecord, id=id)

    @operation
    def update_api_key(
        self,
        id: str,
        *,
        name: str | None = None,
        scopes: Sequence[str] | None = None,
        rate_limit: int | str | None = None,
        burst: int | str | None = None,
        allowed_ips: Sequence[str] | None = None,
        expires_at: Moment | None = None,
    ) -> Operation[ApiKeyRecord]:
        """Change the given fields; an empty string or list resets one to its default."""
        body = given(
            name=name,
            scopes=scopes,
            rate_limit=rate_limit,
            burst=burst,
            allowed_ips=allowed_ips,
            expires_at=moment_or_none(expires_at),
        )
        return put(f"{_API_KEYS}/{{id}}", ApiKeyRecord, body, id=id)

    @operation
    def rotate_api_key(
        self, id: str, *, grace_seconds: int | None = None
    ) -> Operation[ApiKeyCreated]:
        """Replace the key; the old one works until the grace period ends."""
        body = given(grace_seconds=grace_seconds)
        return act(f"{_API_KEYS}/{{id}}/rotate", ApiKeyCreated, body, id=id)

    @listing
    def list_api_keys(self, *, limit: int | None = None) -> Listing[ApiKeyRecord]:
        return listed(_API_KEYS, ApiKeyRecord, given(limit=limit))

    @operation
    def delete_api_key(self, id: str) -> Operation[None]:
        return delete(f"{_API_KEYS}/{{id}}", id=id)
