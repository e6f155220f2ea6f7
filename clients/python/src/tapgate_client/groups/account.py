"""Operations of an admin on the own account."""

from tapgate_client.declaration import M, OperationGroup, acts, lists, reads, sets
from tapgate_client.schemas.account import (
    NewRecoveryCodes,
    SessionRecord,
    TotpSecret,
    VerifiedFactor,
)
from tapgate_client.schemas.admin import OidcStart, Tokens
from tapgate_client.schemas.branding import Preferences
from tapgate_client.schemas.pagination import Page
from tapgate_client.schemas.passkeys import (
    AssertedCredential,
    AttestedCredential,
    CreationOptions,
    EnrolledPasskey,
    PasskeyRecord,
    RequestOptions,
)


class Account(OperationGroup[M]):
    @acts("POST /api/v1/admin/me/totp")
    def start_totp(self, *, current_password: str | None = None) -> TotpSecret:
        """Create a secret for an authenticator app. Confirm it with a code of the app.

        `current_password` is required if no second factor is enrolled and the login was more than
        15 minutes ago.
        """

    @acts("POST /api/v1/admin/me/totp/confirm")
    def confirm_totp(self, *, code: str) -> NewRecoveryCodes:
        """Enroll the authenticator app. Only this response contains the recovery codes."""

    @acts("DELETE /api/v1/admin/me/totp")
    def remove_totp(self, *, code: str) -> None: ...

    @acts("POST /api/v1/admin/me/recovery-codes")
    def replace_recovery_codes(self) -> NewRecoveryCodes:
        """Create new recovery codes, which only this response contains, and end earlier ones."""

    @acts("POST /api/v1/admin/me/step-up")
    def step_up(
        self, *, otp: str | None = None, passkey: AssertedCredential | None = None
    ) -> VerifiedFactor:
        """Verify the second factor again, which sensitive actions require after 15 minutes.

        Give either `otp`, or `passkey`: the credential from `navigator.credentials.get()`.
        """

    @acts("POST /api/v1/admin/me/step-up/oidc/start")
    def start_oidc_step_up(self) -> OidcStart:
        """Start to verify the identity with the provider, without a second factor."""

    @acts("POST /api/v1/admin/me/step-up/oidc")
    def complete_oidc_step_up(
        self, *, login_token: str, state: str, code: str, iss: str | None = None
    ) -> VerifiedFactor:
        """Verify the identity with the parameters of the redirect from the provider."""

    @acts("POST /api/v1/admin/me/passkeys/options")
    def start_passkey(self, *, current_password: str | None = None) -> CreationOptions:
        """Create the options with which a browser creates a passkey.

        `current_password` is required if no second factor is enrolled.
        """

    @acts("POST /api/v1/admin/me/passkeys")
    def enroll_passkey(self, *, name: str, credential: AttestedCredential) -> EnrolledPasskey:
        """Enroll a passkey: the credential from `navigator.credentials.create()`.

        With the first factor, the response contains recovery codes.
        """

    @lists("GET /api/v1/admin/me/passkeys")
    def list_passkeys(self, *, limit: int | None = None) -> Page[PasskeyRecord]: ...

    @sets("DELETE /api/v1/admin/me/passkeys/{id}")
    def remove_passkey(self, id: str) -> None: ...

    @acts("POST /api/v1/admin/me/password")
    def change_password(self, *, current_password: str, new_password: str) -> None:
        """Change the password and end the other sessions."""

    @acts("POST /api/v1/admin/login/passkey/options", public=True)
    def start_passkey_login(self) -> RequestOptions:
        """Create the options with which a browser proves a passkey."""

    @acts("POST /api/v1/admin/login/passkey", public=True)
    def log_in_with_passkey(self, *, credential: AssertedCredential) -> Tokens:
        """Log in with a passkey: the credential from `navigator.credentials.get()`."""

    @reads("GET /api/v1/admin/me/preferences")
    def get_preferences(self) -> Preferences: ...

    @sets("PUT /api/v1/admin/me/preferences")
    def update_preferences(
        self,
        *,
        theme: str | None = None,
        timezone: str | None = None,
        language: str | None = None,
    ) -> Preferences:
        """Change how the admin sees the console. An empty string resets a field."""

    @lists("GET /api/v1/admin/me/sessions")
    def list_sessions(self, *, limit: int | None = None) -> Page[SessionRecord]: ...

    @sets("DELETE /api/v1/admin/me/sessions/{id}")
    def end_session(self, id: str) -> None: ...
