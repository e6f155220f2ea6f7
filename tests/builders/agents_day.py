"""An agent, its super-agent and a customer who chat, each with a phone."""

from typing import Any

from builders.participants import get_balances
from drivers.messenger import MessengerDriver, Phone, ServicesDriver
from tapgate.events.notifications.notification_messages import MessageSender
from tapgate.messenger.channel.render import render_payloads
from tapgate.messenger.model import Template
from tapgate_sandbox.simulators.phone_templates import render_template


class AgentsDay:
    """A super-agent, its sub-agent and a customer, each with a phone."""

    def __init__(
        self,
        services_driver: ServicesDriver,
        messenger: MessengerDriver,
        parent: dict[str, Any],
        agent: dict[str, Any],
        customer: dict[str, Any],
    ) -> None:
        self.services_driver, self.messenger = services_driver, messenger
        self.harness = services_driver.harness
        self.parent, self.agent, self.customer = parent, agent, customer
        self.parent_phone, self.agent_phone, self.customer_phone = (
            messenger.create_phone(person["phone_number"]) for person in (parent, agent, customer)
        )

    async def say(self, phone: Phone, *texts: str) -> str:
        """Say texts in turn, and return the last reply."""
        return [await phone.send_by_bridge(text) for text in texts][-1]

    async def deliver(self) -> None:
        await MessageSender(self.harness.services, self.messenger.client).send_due()

    async def read_templates(self, phone: Phone) -> list[str]:
        """Return the texts of the new messages that the gateway sent."""
        await self.deliver()
        return [
            str(render_template(payload["template"])["text"])
            for reply in await phone.read_replies()
            if isinstance(reply, Template)
            for payload in render_payloads(reply, phone.number)
        ]

    async def get_float(self) -> tuple[str, str]:
        return await get_balances(self.harness, self.agent)

    async def get_wallet(self) -> str:
        return await self.services_driver.get_balance(self.customer["id"])
