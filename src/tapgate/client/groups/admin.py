"""Operations on admins, sessions and API keys."""

from collections.abc import Sequence

from tapgate.client.encoding import DateTimeLike, encode_optional_datetime, omit_none
from tapgate.client.operation import (
    ListOperation,
    M,
    Operation,
    OperationGroup,
    build_delete,
    build_get,
    build_post,
    build_put,
    operation,
)
from tapgate.client.pagination import build_list, list_operation
from tapgate.client.records.admin import Admin as AdminRecord
from tapgate.client.records.admin import ApiKeyRecord, ApiKeyWithSecret, CurrentUser, Tokens
from tapgate.client.request_flow import build_login, build_token_refresh

_ADMIN_PATH = "/api/v1/admin"
_USERS_PATH = f"{_ADMIN_PATH}/users"
_API_KEYS_PATH = f"{_ADMIN_PATH}/api-keys"


class Admin(OperationGroup[M]):
    @operation
    def login(self, *, email: str, password: str) -> Operation[Tokens]:
        """Log in and return the tokens. A client created with `Login` logs in automatically."""
        return build_login(email, password)

    @operation
    def refresh(self, *, refresh_token: str) -> Operation[Tokens]:
        """Exchange a refresh token for new tokens.

        A refresh token is valid for one use. Using it again ends the session.
        """
        return build_token_refresh(refresh_token)

    @operation
    def logout(self) -> Operation[None]:
        return build_post(f"{_ADMIN_PATH}/logout", type(None))

    @operation
    def get_current_user(self) -> Operation[CurrentUser]:
        return build_get(f"{_ADMIN_PATH}/me", CurrentUser)

    @operation
    def create_user(
        self, *, email: str, password: str, name: str, role: str
    ) -> Operation[AdminRecord]:
        body = omit_none(email=email, password=password, name=name, role=role)
        return build_post(_USERS_PATH, AdminRecord, body)

    @list_operation
    def list_users(self, *, limit: int | None = None) -> ListOperation[AdminRecord]:
        return build_list(_USERS_PATH, AdminRecord, omit_none(limit=limit))

    @operation
    def disable_user(self, id: str) -> Operation[AdminRecord]:
        return build_post(f"{_USERS_PATH}/{{id}}/disable", AdminRecord, id=id)

    @operation
    def enable_user(self, id: str) -> Operation[AdminRecord]:
        return build_post(f"{_USERS_PATH}/{{id}}/enable", AdminRecord, id=id)

    @operation
    def create_api_key(
        self,
        *,
        name: str,
        scopes: Sequence[str],
        rate_limit: int | None = None,
        burst: int | None = None,
        allowed_ips: Sequence[str] | None = None,
        expires_at: DateTimeLike | None = None,
    ) -> Operation[ApiKeyWithSecret]:
        """Create an API key. Only this response contains the key itself."""
        body = omit_none(
            name=name,
            scopes=scopes,
            rate_limit=rate_limit,
            burst=burst,
            allowed_ips=allowed_ips,
            expires_at=encode_optional_datetime(expires_at),
        )
        return build_post(_API_KEYS_PATH, ApiKeyWithSecret, body)

    @operation
    def get_api_key(self, id: str) -> Operation[ApiKeyRecord]:
        return build_get(f"{_API_KEYS_PATH}/{{id}}", ApiKeyRecord, id=id)

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
        expires_at: DateTimeLike | None = None,
    ) -> Operation[ApiKeyRecord]:
        """Update the given fields.

        An empty string resets `rate_limit`, `burst` or `expires_at` to its default, and an empty
        list removes the `allowed_ips` restriction.
        """
        body = omit_none(
            name=name,
            scopes=scopes,
            rate_limit=rate_limit,
            burst=burst,
            allowed_ips=allowed_ips,
            expires_at=encode_optional_datetime(expires_at),
        )
        return build_put(f"{_API_KEYS_PATH}/{{id}}", ApiKeyRecord, body, id=id)

    @operation
    def rotate_api_key(
        self, id: str, *, grace_seconds: int | None = None
    ) -> Operation[ApiKeyWithSecret]:
        """Replace the key. The old key remains valid for `grace_seconds`, by default 0."""
        body = omit_none(grace_seconds=grace_seconds)
        return build_post(f"{_API_KEYS_PATH}/{{id}}/rotate", ApiKeyWithSecret, body, id=id)

    @list_operation
    def list_api_keys(self, *, limit: int | None = None) -> ListOperation[ApiKeyRecord]:
        return build_list(_API_KEYS_PATH, ApiKeyRecord, omit_none(limit=limit))

    @operation
    def delete_api_key(self, id: str) -> Operation[None]:
        return build_delete(f"{_API_KEYS_PATH}/{{id}}", id=id)
