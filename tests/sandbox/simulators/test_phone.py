"""Phone simulator: access rules, messenger outages and template texts.

The browser tests cover its normal operation.
"""

from pathlib import Path

import pytest

from cases import each
from drivers.console import ConsoleClient
from drivers.processes import free_port
from harness import Harness
from tapgate.http.api.access import ROLES_BY_LETTER
from tapgate_sandbox.simulators import phone_templates

DEMO_PHONE = "+23225000001"
PATHS = [
    "/simulator/phone",
    "/simulator/phone/people?search=a",
    f"/simulator/phone/messages?to=%2B{DEMO_PHONE[1:]}",
    "/simulator/phone/form-key",
]


@pytest.fixture
def unreachable_messenger_url(harness: Harness) -> str:
    """Point the settings at a messenger that is not running and return its URL."""
    url = f"http://127.0.0.1:{free_port()}"
    harness.services.settings = harness.services.settings.replace(messenger_url=url)
    return url


async def test_only_a_system_admin_can_use_the_phone_simulator(harness: Harness) -> None:
    for path in PATHS:
        response = await harness.get(path)
        assert response.status_code == 303
        assert response.headers["Location"].startswith("/console/sign-in?to=")
    console = ConsoleClient(harness.client)
    for role in set(ROLES_BY_LETTER) - {"A"}:
        console.set_session(await harness.create_admin(role))
        for path in PATHS:
            assert (await console.get(path)).status_code == 403
        csrf = {"X-CSRF-Token": await console.get_csrf_token()}
        for path in ("send", "form"):
            response = await harness.post(f"/simulator/phone/{path}", json={}, headers=csrf)
            assert response.status_code == 403


async def test_sending_requires_a_csrf_token(harness: Harness) -> None:
    console = ConsoleClient(harness.client)
    console.set_session(await harness.create_admin("A"))
    for path in ("send", "form"):
        response = await harness.post(f"/simulator/phone/{path}", json={})
        assert response.status_code == 403


async def test_page_reports_an_unreachable_messenger(
    harness: Harness, unreachable_messenger_url: str
) -> None:
    console = ConsoleClient(harness.client)
    console.set_session(await harness.create_admin("A"))
    assert "Chatting as" in await console.get_page_text("/simulator/phone")
    response = await console.get(PATHS[2])
    assert response.status_code == 200
    expected = f"The messenger is not responding at {unreachable_messenger_url}."
    assert response.json()["problem"].startswith(expected)


async def test_simulators_are_available_in_french(
    harness: Harness, unreachable_messenger_url: str
) -> None:
    console = ConsoleClient(harness.client)
    console.set_session(await harness.create_admin("A"))
    french = {"Accept-Language": "fr"}
    page = await console.get("/simulator/phone", **french)
    assert "Discuter en tant que" in page.text
    assert '<script src="/simulator/texts/fr.js" defer>' in page.text
    assert "Rechercher" in (await console.get("/simulator/texts/fr.js")).text
    assert (await console.get("/simulator/texts/xx.js")).status_code == 404
    problem = (await console.get(PATHS[2], **french)).json()["problem"]
    assert problem.startswith(f"La messagerie ne répond pas à {unreachable_messenger_url}")


async def test_invalid_phone_number_is_reported(
    harness: Harness, unreachable_messenger_url: str
) -> None:
    console = ConsoleClient(harness.client)
    console.set_session(await harness.create_admin("A"))
    for number in ("", "076123456", "+0", "+232' OR 1", "+23276123456789012"):
        response = await harness.get("/simulator/phone/messages", params={"to": number})
        assert "must start with +" in response.json()["problem"]


async def test_invalid_message_is_reported_as_a_problem(
    harness: Harness, unreachable_messenger_url: str
) -> None:
    console = ConsoleClient(harness.client)
    console.set_session(await harness.create_admin("A"))
    headers = {"X-CSRF-Token": await console.get_csrf_token(), "Content-Type": "application/json"}
    for body in (b"", b"\xff", b"{}", b"[]", b'{"from": 7}', b'{"from": "+2"}'):
        response = await harness.post("/simulator/phone/send", content=body, headers=headers)
        assert response.status_code == 200
        assert response.json()["problem"]


def build_template(name: str, *parameters: str, language: str = "en") -> dict[str, object]:
    text_parameters = [{"type": "text", "text": item} for item in parameters]
    components = [
        {"type": "body", "parameters": text_parameters},
        {"type": "button", "sub_type": "url", "index": "0", "parameters": text_parameters[:1]},
    ]
    return phone_templates.render_template(
        {"name": name, "language": {"code": language}, "components": components}
    )


def test_templates_are_rendered_as_text() -> None:
    assert build_template("one_time_code", "918273") == {
        "name": "one_time_code",
        "text": "*918273* is your code. Don't share it with anyone.",
        "code": "918273",
    }
    found = build_template("wallet_changed", "Ada K.", "your wallet was blocked")["text"]
    assert found.startswith("Ada K.: your wallet was blocked.")
    found = build_template("kyc_decided", "approuvée", "Niveau 2.", language="fr")["text"]
    assert found == "Votre vérification d'identité : *approuvée*. Niveau 2. Merci."
    found = build_template("payment_released", "5.00 SLE", "to Ada K.", "txn_1")["text"]
    assert found == "The payment of *5.00 SLE* to Ada K. is complete (transaction txn_1)."
    found = build_template("unknown_template", "{} a", "b")["text"]
    assert found == "_Template unknown_template_\n{} a\nb"
    found = phone_templates.render_template({"name": "one_time_code"})["text"]
    assert found == "_Template one_time_code_"


def test_documented_template_texts_match_the_simulated_phone() -> None:
    lines = Path("docs/running.md").read_text().splitlines()
    documented = {
        row[1].strip(" `"): (row[2].strip(" `"), row[3].strip(" `"))
        for row in (line.split("|") for line in lines if "{{1}}" in line)
    }
    assert {"payment_released", "payment_rejected", "float_low"} <= documented.keys()
    for name, texts in documented.items():
        for language, text in zip(("en", "fr"), texts, strict=True):
            placeholders = [f"{{{{{n + 1}}}}}" for n in range(text.count("{{"))]
            assert build_template(name, *placeholders, language=language)["text"] == text


@each(
    "body", [b"", b"\xff", b"[]", b'{"from": 1}', b'{"from": "\xff"}', b'{"x": ' + b"[" * 100_000]
)
async def test_malformed_message_body_is_reported_as_a_problem(
    ada: ConsoleClient, body: bytes
) -> None:
    headers = {"X-CSRF-Token": await ada.get_csrf_token()}
    response = await ada.client.post("/simulator/phone/send", content=body, headers=headers)
    assert response.status_code == 200, response.text
    assert response.json()["problem"] == "The message is not valid. Reload the page and try again."
