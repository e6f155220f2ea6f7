"""The user's own account and the end of the session, which are the same as in the console."""

from tapgate.sites.console.page_request import PORTAL
from tapgate.sites.console.pages import account, sign_in
from tapgate.sites.console.site import Pages

pages = Pages()

pages.get(f"{PORTAL}/account")(account.show_account)
pages.post(f"{PORTAL}/sign-out")(sign_in.sign_out)
