"""An agent's day with two phones in the simulator.

With TAPGATE_PICTURES, screenshots of the day are saved: `make pictures`.
"""

import re

from playwright.async_api import Browser, expect

from browser.conftest import DemoCustomer
from drivers import chromium
from drivers.chromium import DESKTOP_VIEWPORT, Tab
from drivers.deployments import Deployment
from drivers.phone_page import PhonePage
from tapgate_sandbox.demo.seed import SUPER_AGENT_PIN

_AGENT_PHONE = "+23225900001"


async def test_agents_day_with_two_phones(
    tab: Tab, browser: Browser, deployment: Deployment, demo_customer: DemoCustomer
) -> None:
    """Cash-in, a cash-out that the customer confirms, commission and a float request."""
    agent = PhonePage(tab)
    await agent.open(_AGENT_PHONE)
    await agent.send_message("menu")
    await agent.expect_last_message("What would you like to do?")
    await tab.take_screenshot("agents-day-1-menu", full=False)
    await agent.send_message(f"cash in {demo_customer.phone} 60")
    await agent.expect_last_message("60.00 SLE")
    await _confirm(agent, SUPER_AGENT_PIN)
    await agent.expect_last_message(re.compile(r"txn_\w+"))
    await tab.take_screenshot("agents-day-2-cash-in", full=False)
    await agent.send_message(f"cash out {demo_customer.phone} 40")
    await agent.expect_last_message("40.00 SLE")
    await _confirm(agent, SUPER_AGENT_PIN)
    await agent.expect_last_message("within 5 minutes")
    address = str(deployment.client.base_url)
    async with chromium.open_tab(browser, address, DESKTOP_VIEWPORT) as second:
        customer = PhonePage(second)
        await customer.open(demo_customer.phone)
        await customer.send_message("confirm cash-out")
        await customer.expect_last_message("40.00 SLE")
        await second.take_screenshot("agents-day-3-customer", full=False)
        await _confirm(customer, demo_customer.pin)
        await expect(customer.log).to_contain_text("gives you")
        await expect(agent.log).to_contain_text("confirmed. Hand out the cash")
        await tab.take_screenshot("agents-day-4-hand-out-cash", full=False)
        await agent.send_message("commission")
        await _confirm(agent, SUPER_AGENT_PIN)
        await expect(agent.log).to_contain_text("moved to your float")
        await agent.send_message("request float 200")
        await agent.tap_option("Yes")
        await agent.send_message("float")
        await agent.expect_last_message("Cash-outs: 1")
        await tab.take_screenshot("agents-day-5-float", full=False)
        await agent.require_pins_absent(SUPER_AGENT_PIN, demo_customer.pin)


async def _confirm(phone: PhonePage, pin: str) -> None:
    await phone.tap_option("Yes")
    await phone.enter_pin(pin)
