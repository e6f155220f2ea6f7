"""Sign-in, invitations, the user's own account, and files of the layout, as in the console.

The portal has its own paths for all of them, so that a proxy can publish it without the console.
Single sign-on is missing: it is for the platform's own people.
"""

from typing import Final

from tapgate.sites.console.page_request import PORTAL
from tapgate.sites.console.pages import account, settings, sign_in, texts
from tapgate.sites.console.site import Pages

pages = Pages()

_SIGN_IN_PATH: Final = f"{PORTAL}/sign-in"
_INVITATION_PATH: Final = f"{PORTAL}/invitation"

pages.get(_SIGN_IN_PATH, public=True)(sign_in.show_sign_in_form)
pages.post(_SIGN_IN_PATH, public=True)(sign_in.sign_in)
pages.post(f"{_SIGN_IN_PATH}/passkey", public=True)(sign_in.sign_in_with_passkey)
pages.post(f"{PORTAL}/passkey-options", public=True)(sign_in.get_passkey_options)
pages.get(_INVITATION_PATH, public=True)(sign_in.show_invitation)
pages.post(_INVITATION_PATH, public=True)(sign_in.accept_invitation)
pages.post(f"{PORTAL}/sign-out")(sign_in.sign_out)
pages.get(f"{PORTAL}/account")(account.show_account)
pages.get(f"{PORTAL}/texts/{{file}}", public=True)(texts.serve_texts)
pages.get(f"{PORTAL}/brand.css", public=True)(settings.serve_stylesheet)
pages.get(f"{PORTAL}/logo.png", public=True)(settings.serve_logo)
