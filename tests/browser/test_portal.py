"""The portal in a browser: a merchant's manager signs in."""

from playwright.async_api import expect

from drivers.chromium import Tab
from tapgate_sandbox.demo.owner_users import PASSWORD, USERS


async def test_manager_signs_in_and_sees_the_latest_payments(signed_out_tab: Tab) -> None:
    tab, page = signed_out_tab, signed_out_tab.page
    await tab.sign_in(USERS[0].email, PASSWORD)
    await expect(page).to_have_url(f"{tab.base_url}/portal")
    await expect(page.get_by_role("heading", name="Latest payments")).to_be_visible()
