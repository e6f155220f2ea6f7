"""Phones whose number the provider hides."""

from drivers.messenger import MessengerDriver, Phone, build_text
from tapgate.messenger.model import Template


def create_hidden_number_phone(messenger: MessengerDriver, user_id: str) -> Phone:
    """Create a phone that is identified by a user ID instead of a number."""
    return messenger.create_phone(f"user:{user_id}")


async def send_text(phone: Phone, words: str) -> str:
    """Deliver a text with a user ID only, as for a hidden number, and return the replies."""
    message = phone.build_message(build_text(words)) | {
        "from_user_id": phone.number.removeprefix("user:")
    }
    del message["from"]
    await phone.deliver(message)
    await phone.wait_until_handled()
    return " ".join(getattr(reply, "text", "") for reply in await phone.read_replies())


async def get_pending_code(messenger: MessengerDriver, number: str) -> str:
    template: Template = await messenger.create_phone(number).get_last(Template)
    assert template.name == "one_time_code"
    return template.parameters[0]
