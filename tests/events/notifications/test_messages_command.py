"""`tapgate messages` shows a phone number's pending messages outside production."""

from datetime import timedelta

from drivers.processes import run_command_on
from harness import PRODUCTION_ENVIRON
from tapgate.events.notifications.notification_messages import enqueue_message
from tapgate.http.api.services import Services

PHONE = "+23276123456"
CODE = "402917"


async def _run_messages(services: Services, **variables: str) -> tuple[int, str, str]:
    """Run the command and return its exit status, output and error output."""
    result = await run_command_on(services, "messages", "--to", PHONE, **variables)
    return result.returncode, result.stdout, result.stderr


async def _enqueue_message(services: Services) -> None:
    async with services.transaction() as tx:
        await enqueue_message(
            tx,
            services.vault,
            to=PHONE,
            template="one_time_code",
            parameters=[CODE],
            expires_at=services.clock() + timedelta(minutes=5),
        )


async def test_pending_messages_for_a_phone_are_shown(services: Services) -> None:
    assert await _run_messages(services) == (0, f"No messages for {PHONE}.\n", "")
    await _enqueue_message(services)
    status, output, error = await _run_messages(services)
    assert (status, error) == (0, "")
    timestamp, template, code = output.split()
    assert (template, code) == ("one_time_code:", CODE)
    assert timestamp.endswith("Z")


async def test_messages_are_not_shown_in_production(services: Services) -> None:
    await _enqueue_message(services)
    status, output, error = await _run_messages(services, **PRODUCTION_ENVIRON)
    assert (status, output) == (1, "")
    assert error == "tapgate: messages cannot be shown in production\n"


async def test_different_secret_key_is_reported_in_one_line(services: Services) -> None:
    await _enqueue_message(services)
    status, output, error = await _run_messages(services, TAPGATE_SECRET_KEY="k" * 32)
    assert (status, output) == (1, "")
    assert error.startswith("tapgate: created with secret key ")
    assert error.count("\n") == 1
