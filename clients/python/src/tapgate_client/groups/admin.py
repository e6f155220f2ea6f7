"""Operations on admins, sessions and API keys."""

from collections.abc import Sequence

from tapgate_client.declaration import M, OperationGroup, acts, lists, reads, sets
from tapgate_client.encoding import DateTimeLike, Image
from tapgate_client.responses import File
from tapgate_client.schemas.admin import Admin as AdminRecord
from tapgate_client.schemas.admin import (
    ApiKeyRecord,
    ApiKeyWithSecret,
    Invitation,
    Me,
    NewAdminRecord,
    Offboarding,
    OidcLogout,
    OidcStart,
    Tokens,
)
from tapgate_client.schemas.branding import BrandingRecord
from tapgate_client.schemas.pagination import Page
from tapgate_client.schemas.passkeys import AssertedCredential
from tapgate_client.schemas.request_logs import LoggedRequest, LoggedRequestDetails


class Admin(OperationGroup[M]):
    @acts("POST /api/v1/admin/login", public=True)
    def login(self, *, email: str, password: str, otp: str | None = None) -> Tokens:
        """Log in and return the tokens. A client created with `Login` logs in automatically.

        `otp` is a code of the authenticator app or a recovery code, if one is enrolled.
        """

    @acts("POST /api/v1/admin/login/oidc/start", public=True)
    def start_oidc_login(self) -> OidcStart:
        """Start a login with the identity provider."""

    @acts("POST /api/v1/admin/login/oidc", public=True)
    def login_with_oidc(
        self,
        *,
        login_token: str,
        state: str,
        code: str,
        iss: str | None = None,
        password: str | None = None,
        otp: str | None = None,
        passkey: AssertedCredential | None = None,
    ) -> Tokens:
        """Complete a login with the identity provider."""

    @acts("POST /api/v1/admin/refresh", public=True)
    def refresh(self, *, refresh_token: str) -> Tokens:
        """Exchange a refresh token for new tokens.

        A refresh token is valid for one use. Using it again ends the session.
        """

    @acts("POST /api/v1/admin/logout")
    def logout(self) -> None: ...

    @reads("GET /api/v1/admin/me/oidc-logout")
    def get_oidc_logout(self) -> OidcLogout:
        """Return the URL that ends a session of single sign-on at the identity provider."""

    @reads("GET /api/v1/admin/me")
    def get_current_user(self) -> Me: ...

    @reads("GET /api/v1/admin/branding", public=True)
    def get_branding(self) -> BrandingRecord: ...

    @sets("PUT /api/v1/admin/branding")
    def update_branding(
        self,
        *,
        name: str | None = None,
        color: str | None = None,
        support_contact: str | None = None,
        statement_header: str | None = None,
        logo: Image | None = None,
    ) -> BrandingRecord:
        """Change the branding. `logo` is a PNG image. An empty string resets a text."""

    @reads("GET /api/v1/admin/branding/logo", public=True)
    def get_branding_logo(self) -> File:
        """Return the logo."""

    @acts("POST /api/v1/admin/users")
    def create_user(
        self, *, email: str, name: str, role: str, password: str | None = None
    ) -> NewAdminRecord:
        """Create an admin. Without a password, the response has an invitation link."""

    @lists("GET /api/v1/admin/users")
    def list_users(self, *, limit: int | None = None) -> Page[AdminRecord]: ...

    @sets("PUT /api/v1/admin/users/{id}")
    def update_user(
        self, id: str, *, name: str | None = None, role: str | None = None
    ) -> AdminRecord: ...

    @acts("POST /api/v1/admin/users/{id}/reset-factors")
    def reset_factors(self, id: str) -> AdminRecord:
        """Remove the second factors of another admin and end the admin's sessions."""

    @acts("POST /api/v1/admin/users/{id}/confirm")
    def confirm(self, id: str) -> AdminRecord:
        """Confirm that an account belongs to its admin, as a third admin."""

    @acts("POST /api/v1/admin/users/{id}/reset-password")
    def reset_password(self, id: str) -> Invitation:
        """Make another admin's password unusable and return a link to set a new one."""

    @acts("POST /api/v1/admin/invitations/accept", public=True)
    def accept_invitation(self, *, token: str, password: str) -> None:
        """Set the password with an invitation link."""

    @reads("GET /api/v1/admin/users/{id}/offboarding")
    def get_offboarding(self, id: str) -> Offboarding:
        """Get the API keys to rotate or delete, and the scarce approvers, before disabling."""

    @acts("POST /api/v1/admin/users/{id}/disable")
    def disable_user(self, id: str) -> AdminRecord: ...

    @acts("POST /api/v1/admin/users/{id}/enable")
    def enable_user(self, id: str) -> AdminRecord: ...

    @acts("POST /api/v1/admin/api-keys")
    def create_api_key(
        self,
        *,
        name: str,
        scopes: Sequence[str],
        rate_limit: int | None = None,
        burst: int | None = None,
        allowed_ips: Sequence[str] | None = None,
        expires_at: DateTimeLike | None = None,
    ) -> ApiKeyWithSecret:
        """Create an API key. Only this response contains the key itself."""

    @reads("GET /api/v1/admin/api-keys/{id}")
    def get_api_key(self, id: str) -> ApiKeyRecord: ...

    @sets("PUT /api/v1/admin/api-keys/{id}")
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
    ) -> ApiKeyRecord:
        """Update the given fields.

        An empty string resets `rate_limit`, `burst` or `expires_at` to its default, and an empty
        list removes the `allowed_ips` restriction.
        """

    @acts("POST /api/v1/admin/api-keys/{id}/rotate")
    def rotate_api_key(self, id: str, *, grace_seconds: int | None = None) -> ApiKeyWithSecret:
        """Replace the key. The old key remains valid for `grace_seconds`, by default 0."""

    @lists("GET /api/v1/admin/api-keys")
    def list_api_keys(
        self, *, admin_id: str | None = None, limit: int | None = None
    ) -> Page[ApiKeyRecord]:
        """List API keys, or those that an admin created or was the last to rotate."""

    @sets("DELETE /api/v1/admin/api-keys/{id}")
    def delete_api_key(self, id: str) -> None: ...

    @lists("GET /api/v1/admin/request-logs")
    def list_request_logs(
        self,
        *,
        api_key_id: str | None = None,
        method: str | None = None,
        endpoint: str | None = None,
        status: int | None = None,
        result: str | None = None,
        error_code: str | None = None,
        request_id: str | None = None,
        from_: DateTimeLike | None = None,
        to: DateTimeLike | None = None,
        limit: int | None = None,
    ) -> Page[LoggedRequest]: ...

    @reads("GET /api/v1/admin/request-logs/{id}")
    def get_request_log(self, id: str) -> LoggedRequestDetails: ...
