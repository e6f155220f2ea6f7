"""The signed-in administrator's own account."""

from typing import Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console.actions import Action
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.page_request import ACCOUNT_PATH, PageRequest
from tapgate.sites.console.site import Pages

pages = Pages()

_ME: Final = "/api/v1/admin/me"
_CODE_HINT: Final = "6 digits from the app, or a recovery code"
_PASSKEY_DESCRIPTION: Final = (
    "Sign in with your fingerprint, face or screen lock, or with a security key, instead of a "
    "password and a code."
)

_TOTP_DESCRIPTION: Final = "You then need a code from the app every time you sign in."
_FIRST_FACTOR_NOTICE: Final = "Signs you out on all other devices."

ACTIONS = (
    Action(
        name="account.start_totp",
        endpoint=f"POST {_ME}/totp",
        title="Set up an authenticator app",
        description=_TOTP_DESCRIPTION,
        button="Continue",
        success_message="Scan the QR code",
        result_template="account/totp.html",
        sends_body=True,
    ),
    Action(
        name="account.start_first_totp",
        endpoint=f"POST {_ME}/totp",
        title="Set up an authenticator app",
        description=f"{_TOTP_DESCRIPTION} {_FIRST_FACTOR_NOTICE}",
        button="Continue",
        fields=(Field("current_password", kind="secret"),),
        success_message="Scan the QR code",
        result_template="account/totp.html",
    ),
    Action(
        name="account.confirm_totp",
        endpoint=f"POST {_ME}/totp/confirm",
        title="Confirm the authenticator app",
        button="Confirm",
        fields=(Field("code", hint="6 digits from the app"),),
        success_message="Authenticator app set up",
        result_template="account/recovery_codes.html",
    ),
    Action(
        name="account.remove_totp",
        endpoint=f"DELETE {_ME}/totp",
        title="Remove the authenticator app?",
        description="If you have no passkey, your recovery codes stop working too.",
        button="Remove",
        fields=(Field("code", hint=_CODE_HINT),),
        success_message="Authenticator app removed.",
        is_dangerous=True,
    ),
    Action(
        name="account.start_passkey",
        endpoint=f"POST {_ME}/passkeys/options",
        title="Add a passkey",
        description=_PASSKEY_DESCRIPTION,
        button="Continue",
        success_message="Create the passkey",
        result_template="account/new_passkey.html",
        sends_body=True,
    ),
    Action(
        name="account.start_first_passkey",
        endpoint=f"POST {_ME}/passkeys/options",
        title="Add a passkey",
        description=f"{_PASSKEY_DESCRIPTION} {_FIRST_FACTOR_NOTICE}",
        button="Continue",
        fields=(Field("current_password", kind="secret"),),
        success_message="Create the passkey",
        result_template="account/new_passkey.html",
    ),
    Action(
        name="account.add_passkey",
        endpoint=f"POST {_ME}/passkeys",
        title="Create the passkey",
        button="Create passkey",
        fields=(Field("name"), Field("credential", "Passkey", "credential")),
        success_message="Passkey added.",
        result_template="account/recovery_codes.html",
        result_field="recovery_codes",
    ),
    Action(
        name="account.remove_passkey",
        endpoint=f"DELETE {_ME}/passkeys/{{id}}",
        title="Remove this passkey?",
        description="It can no longer sign in. Delete it on your device too.",
        button="Remove",
        success_message="Passkey removed.",
        is_dangerous=True,
    ),
    Action(
        name="account.recovery_codes",
        endpoint=f"POST {_ME}/recovery-codes",
        title="Create new recovery codes?",
        description="Each works once if you can't use your second factor. Your earlier codes stop "
        "working.",
        button="Create codes",
        success_message="New recovery codes",
        result_template="account/recovery_codes.html",
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
            Field("current_password", kind="secret"),
            Field("new_password", kind="secret", hint="At least 12 characters"),
        ),
        success_message="Password changed.",
    ),
    Action(
        name="account.preferences",
        endpoint=f"PUT {_ME}/preferences",
        title="Edit preferences",
        button="Save",
        prefill_path=f"{_ME}/preferences",
        fields=(
            Field(
                "theme",
                kind="choice",
                choices=(("light", "Light"), ("dark", "Dark")),
                hint="Leave blank to use the theme of the device",
                required=False,
                resets=True,
            ),
            Field(
                "timezone",
                "Time zone",
                hint="For example, Africa/Freetown. Leave blank to use that of the device",
                required=False,
                resets=True,
            ),
            Field(
                "language",
                kind="choice",
                choices=(("en", "English"), ("fr", "Français")),
                hint="Leave blank to use that of the browser",
                required=False,
                resets=True,
            ),
        ),
        success_message="Preferences saved.",
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
    Action(
        name="account.end_other_sessions",
        endpoint=f"DELETE {_ME}/sessions",
        title="Sign out all other sessions?",
        description="All other devices must sign in again.",
        button="Sign out",
        success_message="Other sessions ended.",
        is_dangerous=True,
    ),
)


@pages.get(ACCOUNT_PATH)
async def show_account(request: PageRequest) -> Reply[bytes]:
    return request.render(
        "account/account.html",
        account=await request.get(_ME),
        passkeys=await request.get_if_allowed(f"{_ME}/passkeys"),
        sessions=await request.get_if_allowed(f"{_ME}/sessions"),
    )
