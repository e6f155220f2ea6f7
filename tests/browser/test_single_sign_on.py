"""Single sign-on in Chromium: redirects between sites, cookies and the content security policy.

The provider is at `localhost` and the console at `127.0.0.1`, which browsers treat as two sites.
"""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, expect

from drivers import chromium
from drivers.chromium import DESKTOP_VIEWPORT, Tab
from drivers.identity_provider import FakeProvider
from drivers.in_process import AppTransport
from drivers.network_faults import FlakyServer
from tapgate.auth.oidc.logins import OidcLogins
from tapgate.http.api.services import Services
from tapgate.server.gateway import create_app


@pytest.fixture
async def provider() -> AsyncIterator[FakeProvider]:
    async with FakeProvider("localhost").listen() as provider:
        yield provider


@pytest.fixture
async def sso_tab(
    browser: Browser, services: Services, provider: FakeProvider
) -> AsyncIterator[Tab]:
    """Yield a console tab that offers single sign-on."""
    services.settings = services.settings.replace(oidc=provider.settings)
    async with FlakyServer(AppTransport(create_app(services))).listen() as server:
        services.authenticator.oidc = OidcLogins(
            provider.settings,
            server.url,
            database=services.database,
            vault=services.vault,
            clock=services.clock,
        )
        async with chromium.open_tab(browser, server.url, DESKTOP_VIEWPORT) as tab:
            tab.monitor.expected_problems = (f"another host: {provider.issuer}",)
            yield tab


async def test_sign_in_and_sign_out_with_the_provider(sso_tab: Tab, provider: FakeProvider) -> None:
    page = sso_tab.page
    await sso_tab.open("/console/agents?status=active")
    await expect(page.get_by_role("link", name="Sign in with single sign-on")).to_be_visible()
    await sso_tab.take_screenshot("sign_in_with_single_sign_on")
    assert await sso_tab.find_axe_violations() == []
    await page.get_by_role("link", name="Sign in with single sign-on").click()
    await expect(page.get_by_role("heading", name="Agents", exact=True)).to_be_visible()
    assert page.url == f"{sso_tab.base_url}/console/agents?status=active"
    await page.get_by_role("link", name="Grace").click()
    await expect(page.get_by_text("single sign-on", exact=True)).to_be_visible()
    await sso_tab.take_screenshot("account_with_single_sign_on")
    await page.get_by_role("button", name="Sign out", exact=True).click()
    await expect(page.get_by_label("Password")).to_be_visible()
    assert "/logout" in provider.requests
    await sso_tab.open("/console")
    await expect(page.get_by_label("Password")).to_be_visible()


async def test_sensitive_action_is_verified_at_the_provider_in_a_new_tab(sso_tab: Tab) -> None:
    page, dialog = sso_tab.page, sso_tab.page.get_by_role("dialog")
    await sso_tab.open("/console/api-keys")
    await page.get_by_role("link", name="Sign in with single sign-on").click()
    await page.wait_for_url("**/console/api-keys")
    await page.get_by_role("button", name="Create key").first.click()
    await dialog.get_by_label("Name").fill("Reports")
    await dialog.get_by_label("Read cards").check()
    await dialog.get_by_role("button", name="Create key").click()
    link = dialog.get_by_role("link", name="Sign in again")
    await expect(link).to_be_focused()
    assert await sso_tab.find_axe_violations() == []
    await sso_tab.take_screenshot("step-up-sso", full=False)
    async with page.context.expect_page() as opening:
        await link.click()
    other = await opening.value
    await expect(other.get_by_role("heading", name="Identity verified")).to_be_visible()
    await other.close()
    await dialog.get_by_role("button", name="Create key").click()
    await expect(dialog).to_contain_text("You won't be able to see it again")
    await sso_tab.open("/console/sso/verify")
    await expect(page.get_by_role("heading", name="Identity verified")).to_be_visible()
    assert await sso_tab.find_axe_violations() == []
    await sso_tab.take_screenshot("verified-sso")
