"""Operations of an admin on the own account."""

from tapgate.client.declaration import M, OperationGroup, acts, lists, sets
from tapgate.schemas.account import RecoveryCodes, SessionRecord, TotpSecret, VerifiedFactor
from tapgate.schemas.pagination import Page


class Account(OperationGroup[M]):
    @acts("POST /api/v1/admin/me/totp")
    def start_totp(self) -> TotpSecret:
        """Create a secret for an authenticator app. Confirm it with a code of the app."""

    @acts("POST /api/v1/admin/me/totp/confirm")
    def confirm_totp(self, *, code: str) -> RecoveryCodes:
        """Enroll the authenticator app. Only this response contains the recovery codes."""

    @acts("DELETE /api/v1/admin/me/totp")
    def remove_totp(self, *, code: str) -> None: ...

    @acts("POST /api/v1/admin/me/step-up")
    def step_up(self, *, otp: str) -> VerifiedFactor:
        """Verify the second factor again, which sensitive actions require after 15 minutes."""

    @acts("POST /api/v1/admin/me/password")
    def change_password(self, *, current_password: str, new_password: str) -> None:
        """Change the password and end the other sessions."""

    @lists("GET /api/v1/admin/me/sessions")
    def list_sessions(self, *, limit: int | None = None) -> Page[SessionRecord]: ...

    @sets("DELETE /api/v1/admin/me/sessions/{id}")
    def end_session(self, id: str) -> None: ...
