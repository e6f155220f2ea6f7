"""CSV list export."""

from builders.support import send_message
from drivers.console import ConsoleClient, ConsoleClients
from drivers.csv_files import read_rows
from harness import Harness
from tapgate.sites.console.console import PAGES
from tapgate.sites.console.pages import exports


async def test_every_exported_list_returns_its_columns(
    ada: ConsoleClient, harness: Harness
) -> None:
    await harness.create_subscriber(address="=Sum, Main Street")
    await send_message(harness, "Secret words")
    for path, export in exports.EXPORTS.items():
        response = await ada.get(f"/console/export/{path.rpartition('/')[2]}")
        assert response.status_code == 200, path
        header, *rows = read_rows(response.content)
        assert header == export.columns
        assert response.headers["X-Rows"] == str(len(rows))
        assert "X-Next-Cursor" not in response.headers
        assert "Secret words" not in response.text
        assert "/console/export/" in await ada.get_page_text(path)
    response = await ada.get("/console/export/subscribers")
    assert '"\'=Sum, Main Street"' in response.text


async def test_export_has_the_filters_of_the_list(ada: ConsoleClient, harness: Harness) -> None:
    customer = await harness.create_subscriber(first_name="Mariama")
    other = await harness.create_subscriber(first_name="Fatmata")
    text = (await ada.get("/console/export/subscribers?search=mariama")).text
    assert customer["id"] in text and other["id"] not in text


async def test_long_list_is_exported_in_parts(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    await harness.database.execute(
        """INSERT INTO support_requests (id, phone_number, created_at, updated_at)
           SELECT n, '+2327600' || n, now(), now() FROM generate_series(1000, 2199) AS n"""
    )
    support = await console_clients.create_signed_in("S")
    first = await support.get("/console/export/support")
    assert first.headers["X-Rows"] == "1000"
    cursor = first.headers["X-Next-Cursor"]
    second = await support.get(f"/console/export/support?cursor={cursor}")
    assert second.headers["X-Rows"] == "200" and "X-Next-Cursor" not in second.headers
    phones = {line.split(",")[2] for line in (first.text + second.text).splitlines()[1:]}
    assert len(phones) == 1200


async def test_role_without_access_gets_no_export(console_clients: ConsoleClients) -> None:
    support = await console_clients.create_signed_in("S")
    assert (await support.get("/console/export/audit")).status_code == 403
    assert (await support.get("/console/export/nothing")).status_code == 404


def test_exports_belong_to_pages() -> None:
    paths = {page.path for pages in PAGES for page in pages}
    assert exports.EXPORTS.keys() <= paths
