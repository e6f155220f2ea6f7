"""Branding: validation, storage, and its use in statements and on the page of a tapped card."""

import base64
import io

import msgspec
from PIL import Image

from builders.branding import BRANDING, build_png
from builders.statements import build_statement
from business.payments.wallets.pdf_text import extract_pages
from cases import each
from harness import Harness
from tapgate.business.branding.model import render_stylesheet
from tapgate.business.payments.wallets.statements import pdf_file
from tapgate_client.colors import get_contrast

URL = "/api/v1/admin/branding"


def _encode(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


async def test_branding_is_changed_and_reset_field_by_field(harness: Harness) -> None:
    admin = await harness.create_admin("A")
    defaults = (await harness.client.get(URL)).json()
    assert (defaults["name"], defaults["color"], defaults["has_logo"]) == (
        "Tapgate",
        "#0f766e",
        False,
    )
    assert (await harness.client.get(f"{URL}/logo")).status_code == 404
    changes = {
        "name": "Salone Pay",
        "color": "#7C2D12",
        "support_contact": "+232 25 000 000",
        "statement_header": "12 Kissy Road\nFreetown",
        "logo": _encode(build_png()),
    }
    record = (await harness.client.put(URL, json=changes, auth=admin)).json()
    assert (record["name"], record["color"], record["has_logo"]) == ("Salone Pay", "#7c2d12", True)
    logo = await harness.client.get(f"{URL}/logo")
    assert logo.headers["content-type"] == "image/png"
    assert Image.open(io.BytesIO(logo.content)).size == (4, 2)
    record = (await harness.client.put(URL, json={"name": "", "logo": ""}, auth=admin)).json()
    assert (record["name"], record["color"], record["has_logo"]) == ("Tapgate", "#7c2d12", False)
    entries = await harness.services.database.fetch(
        "SELECT changes FROM audit_entries WHERE event = 'branding.updated' ORDER BY id"
    )
    assert len(entries) == 2 and "iVBOR" not in str(entries), "the audit log has only a hash"


@each("field, value, message", [
    ["color", "#ffd166", "must be darker"],
    ["color", "teal", "must be a color"],
    ["name", "x" * 41, "characters"],
    ["statement_header", "x" * 201, "characters"],
    ["logo", "data:image/jpeg;base64,AAAA", "PNG"],
    ["logo", "data:image/png;base64,AAAA", "must be a valid"],
    ["logo", _encode(build_png(1025, 1)), "1024 pixels"],
    ["logo", "data:image/png;base64,".ljust(400_001, "A"), "300 KB"],
])  # fmt: skip
async def test_invalid_branding_is_rejected(
    harness: Harness, field: str, value: str, message: str
) -> None:
    admin = await harness.create_admin("A")
    response = await harness.client.put(URL, json={field: value}, auth=admin)
    assert response.status_code == 422, response.text
    assert message in response.json()["details"]["fields"][field]


async def test_page_of_a_tapped_card_shows_the_branding(harness: Harness) -> None:
    admin = await harness.create_admin("A")
    changes = {"name": "Salone Pay", "color": "#7c2d12", "logo": _encode(build_png())}
    await harness.client.put(URL, json=changes, auth=admin)
    page = (await harness.client.get("/t")).text
    assert "Salone Pay" in page and "/t/brand.css" in page and "/t/logo.png" in page
    assert "--brand: #7c2d12" in (await harness.client.get("/t/brand.css")).text
    assert (await harness.client.get("/t/logo.png")).headers["content-type"] == "image/png"
    await harness.client.put(URL, json=dict.fromkeys(changes, ""), auth=admin)


async def test_browsers_get_an_icon_without_a_link_in_the_page(harness: Harness) -> None:
    client = harness.client
    default = await client.get("/favicon.ico")
    assert default.headers["content-type"].startswith("image/svg+xml")
    assert default.headers["cache-control"] == "public, max-age=86400"
    known = {"If-None-Match": default.headers["etag"]}
    assert (await client.get("/favicon.ico", headers=known)).status_code == 304
    admin = await harness.create_admin("A")
    await client.put(URL, json={"logo": _encode(build_png())}, auth=admin)
    logo = await client.get("/favicon.ico")
    assert logo.headers["content-type"] == "image/png"
    assert logo.headers["cache-control"] == "public, max-age=86400"
    await client.put(URL, json={"logo": ""}, auth=admin)
    assert (await client.post("/favicon.ico", content=b"")).status_code == 405
    assert (await client.get("/favicon.ico/other")).status_code == 404


def test_statement_shows_the_operator_and_the_header() -> None:
    branding = msgspec.structs.replace(
        BRANDING, name="Salone Pay", statement_header="12 Kissy Road\nFreetown", logo=build_png()
    )
    (page,) = extract_pages(pdf_file.render(build_statement(0), branding))
    assert "Salone Pay" in str(page) and "12 Kissy Road" in str(page) and "Freetown" in str(page)


@each("color", ["#0f766e", "#000000", "#7c2d12", "#767676", "#0000ff"])
def test_colors_are_readable_in_both_themes(color: str) -> None:
    light, *_, dark = render_stylesheet(color).splitlines()
    for line, surface in ((light, "#ffffff"), (dark, "#14181e")):
        values = {
            name.strip(" {-"): value
            for name, _, value in (
                part.partition(": ") for part in line.rpartition("{ ")[2].split("; ")
            )
        }
        accent, soft, ink = values["accent"], values["accent-soft"], values["on-accent"]
        for first, second in ((accent, surface), (accent, soft), (accent, ink)):
            assert get_contrast(first, second[:7]) >= 4.5, (color, line)


async def test_preferences_are_changed_and_reset(harness: Harness) -> None:
    admin, url = await harness.create_admin("S"), "/api/v1/admin/me/preferences"
    none = {"theme": None, "timezone": None, "language": None}
    assert (await harness.client.get(url, auth=admin)).json() == none
    changes = {"theme": "dark", "timezone": "Africa/Freetown", "language": "fr"}
    assert (await harness.client.put(url, json=changes, auth=admin)).json() == changes
    assert (await harness.client.get(url, auth=admin)).json() == changes
    reset = dict.fromkeys(changes, "")
    assert (await harness.client.put(url, json=reset, auth=admin)).json() == none
    for invalid in (
        {"theme": "pink"},
        {"timezone": "Mars/Base"},
        {"timezone": "../etc/passwd"},
        {"language": "de"},
    ):
        assert (await harness.client.put(url, json=invalid, auth=admin)).status_code == 422
