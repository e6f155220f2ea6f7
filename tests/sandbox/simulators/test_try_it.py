"""The demo's keys for *Try it* in the API reference: for system admins in development only."""

import pytest

from drivers.console import ConsoleClient, ConsoleClients
from harness import Harness
from tapgate_sandbox.demo import examples

EXAMPLES = [
    "# Aminata Kamara: phone +23225000001, card DEMO-000001, PIN 4826",
    "curl http://g/api/v1/subscribers/sub_0800000000000 -H 'Authorization: Bearer svc_test_a-b'",
    """curl http://g/api/v1/agents/cashin -d '{"agent_id":"agt_08","agent_pin":"6175"}'""",
    "curl http://g $(tapgate sign pos POST / --key-id key_08 --secret=s-e_c)",
    "# Mohamed Sesay: phone +23225000002, card DEMO-000002, PIN 7391",
]


async def test_system_admin_gets_keys_and_values_of_the_demo(
    ada: ConsoleClient, harness: Harness
) -> None:
    settings = harness.services.settings
    assert (await ada.get("/simulator/try-it")).status_code == 404  # no demo
    examples.save_examples(settings.data_dir, EXAMPLES)
    loaded = (await ada.get("/simulator/try-it")).json()
    assert loaded["credentials"] == {
        "bearer": {"token": "svc_test_a-b"},
        "pos": {"keyId": "key_08", "secret": "s-e_c"},
    }
    values = loaded["values"]
    assert (values["card_serial"], values["pin"]) == ("DEMO-000001", "4826")
    assert values["recipient_card_serial"] == "DEMO-000002"
    assert (values["agent_id"], values["agent_pin"]) == ("agt_08", "6175")
    harness.services.settings = settings.replace(environment="testing")
    assert (await ada.get("/simulator/try-it")).status_code == 404


@pytest.mark.parametrize("role", "CSF")
async def test_other_roles_get_no_keys(
    console_clients: ConsoleClients, harness: Harness, role: str
) -> None:
    examples.save_examples(harness.services.settings.data_dir, EXAMPLES)
    console = await console_clients.create_signed_in(role)
    response = await console.get("/simulator/try-it")
    assert response.status_code == 403
    assert "svc_test" not in response.text


async def test_visitor_without_a_session_gets_no_keys(
    signed_out_client: ConsoleClient, harness: Harness
) -> None:
    examples.save_examples(harness.services.settings.data_dir, EXAMPLES)
    response = await signed_out_client.get("/simulator/try-it")
    assert response.status_code in (303, 401)
    assert "svc_test" not in response.text
