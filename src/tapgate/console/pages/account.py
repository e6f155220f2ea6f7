"""The signed-in administrator's own account."""

from typing import Final

from tapgate.console.actions import Action
from tapgate.console.form_fields import Field
from tapgate.console.page_request import PageRequest
from tapgate.console.site import Pages
from tapgate.http.endpoint import Reply

pages = Pages()

_ME: Final = "/api/v1/admin/me"
_PATH: Final = "/console/account"
_CODE_HINT: Final = "6 digits from the app, or a recovery code"

ACTIONS = (
    Action(
        name="account.start_totp",
        endpoint=f"POST {_ME}/totp",
        title="Set up an authenticator app",
        description="You then need a code from the app every time you sign in.",
        button="Continue",
        success_message="Scan the QR code",
        result_template="account/totp.html",
    ),
    Action(
        name="account.confirm_totp",
        endpoint=f"POST {_ME}/totp/confirm",
        title="Confirm the authenticator app",
        button="Confirm",
        fields=(Field("code", "Code", hint="6 digits from the app"),),
        success_message="Authenticator app set up",
        result_template="account/recovery_codes.html",
    ),
    Action(
        name="account.remove_totp",
        endpoint=f"DELETE {_ME}/totp",
        title="Remove the authenticator app?",
        description="Your recovery codes stop working too.",
        button="Remove",
        fields=(Field("code", "Code", hint=_CODE_HINT),),
        success_message="Authenticator app removed.",
        is_dangerous=True,
    ),
    Action(
        name="account.step_up",
        endpoint=f"POST {_ME}/step-up",
        title="Verify your identity",
        description="Sensitive actions need a code from the last 15 minutes.",
        button="Verify",
        fields=(Field("otp", "Code", hint=_CODE_HINT),),
        success_message="Verified for 15 minutes.",
    ),
    Action(
        name="account.password",
        endpoint=f"POST {_ME}/password",
        title="Change your password",
        description="Signs you out on all other devices.",
        button="Change password",
        fields=(
            Field("current_password", "Current password", "secret"),
            Field("new_password", "New password", "secret", hint="At least 12 characters"),
        ),
        success_message="Password changed.",
    ),
    Action(
        name="account.end_session",
        endpoint=f"DELETE {_ME}/sessions/{{id}}",
        title="Sign out this session?",
        description="The device must sign in again.",
        button="Sign out",
        success_message="Session ended.",
        is_dangerous=True,
    ),
)


@pages.get(_PATH)
async def show_account(request: PageRequest) -> Reply[bytes]:
    return request.render(
        "account/account.html",
        account=await request.get(_ME),
        sessions=await request.get_if_allowed(f"{_ME}/sessions"),
    )
