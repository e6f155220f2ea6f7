"""Card upload page: the result of each row, and the errors for invalid files."""

import csv
import io
import re
from urllib.parse import unquote

import pytest

from drivers.console import ConsoleClient, ConsoleClients
from harness import Harness

URL = "/console/cards/upload"
HEADER = "Serial No.,MAC Address\n"


def parse_counts(text: str) -> list[str]:
    """Return the counts of created, skipped, failed and total rows."""
    return re.findall(r"<dd>([\d,]+)</dd>", text)


async def test_upload_reports_created_skipped_and_failed_rows(
    ada: ConsoleClient, harness: Harness
) -> None:
    form = await ada.get_page_text(URL)
    assert 'hx-encoding="multipart/form-data"' in form and "<progress data-upload" in form
    file = f"{HEADER}UP-1,04A22B1A6F8001\nUP-2,nonsense\n<b>&,\nUP-1,\n".encode()
    text = (await ada.post_file(URL, file)).text
    assert parse_counts(text) == ["1", "0", "3", "4"]
    assert 'data-label="Row">3</td><td data-label="Serial">UP-2<' in text
    assert "&lt;b&gt;&amp;" in text and "<b>" not in text
    assert "Serial No. is a duplicate of row 2" in text
    text = (await ada.post_file(URL, f"{HEADER}UP-1,04A22B1A6F8001\n".encode())).text
    assert (
        parse_counts(text) == ["0", "1", "0", "1"] and "already imported. Nothing changed." in text
    )
    assert "UP-1" in await ada.get_page_text("/console/cards?status=UNASSIGNED")


async def test_long_error_list_is_truncated_and_downloadable_as_csv(ada: ConsoleClient) -> None:
    rows = "".join(f"=BAD {number},\n" for number in range(3000))
    text = (await ada.post_file(URL, (HEADER + rows).encode())).text
    assert parse_counts(text) == ["0", "0", "3,000", "3,000"]
    assert text.count('data-label="Row"') == 200 and "2,800 more in the download." in text
    link = re.search(r'href="data:text/csv;charset=utf-8,([^"]+)" download', text)
    assert link is not None
    stored = list(csv.reader(io.StringIO(unquote(link[1]))))
    assert stored[0] == ["Row", "Serial No.", "Error"] and len(stored) == 3001
    assert stored[-1][:2] == ["3001", "'=BAD 2999"], "formulas must be escaped"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "The file must start with the header Serial No.,MAC Address"),
        (b"Name,Phone\nA,B\n", "The file must start with the header"),
        (b"\x89PNG\r\n\x1a\n\x00\xff", "The file must be UTF-8."),
        (HEADER.encode() + b'"TAP-1,\n', "The file is not valid CSV"),
        (HEADER.encode() + b"A,\n" * 10_001, "The file must have at most 10000 rows."),
    ],
)
async def test_invalid_file_creates_no_cards(
    ada: ConsoleClient, content: bytes, message: str
) -> None:
    response = await ada.post_file(URL, content)
    assert response.status_code == 200
    assert "No cards imported" in response.text and message in response.text


async def test_file_with_only_a_header_is_reported(ada: ConsoleClient) -> None:
    text = (await ada.post_file(URL, HEADER.encode())).text
    assert "a header but no rows" in text and parse_counts(text) == ["0", "0", "0", "0"]


async def test_form_without_a_file_creates_no_cards(ada: ConsoleClient) -> None:
    response = await ada.post_partial(URL, {"file": "cards.csv"})
    assert response.status_code == 200 and "No cards imported" in response.text


async def test_console_upload_has_the_file_size_limit_of_the_api(ada: ConsoleClient) -> None:
    """The console accepts a larger body for the form overhead, but not a larger file."""
    content = f"{HEADER}UP-LARGE,\n".encode()
    content += b"\n".ljust(60_000, b" ") * ((8 * 1024 * 1024 - len(content)) // 60_000 + 1)
    response = await ada.post_file(URL, content)
    assert "Request body too large" in response.text and parse_counts(response.text) == []
    assert "/console/cards/UP-LARGE" not in await ada.get_page_text(
        "/console/cards?search=UP-LARGE"
    )


@pytest.mark.parametrize("role", ["C", "S", "F"])
async def test_only_system_admins_can_upload_cards(
    console_clients: ConsoleClients, role: str
) -> None:
    console = await console_clients.create_signed_in(role)
    assert (await console.get(URL)).status_code == 403
    assert (await console.post_file(URL, f"{HEADER}UP-9,\n".encode())).status_code == 403
    assert "UP-9" not in await console.get_page_text("/console/cards")


async def test_upload_requires_the_csrf_token_of_the_session(ada: ConsoleClient) -> None:
    response = await ada.post_file(URL, f"{HEADER}UP-8,\n".encode(), csrf="0" * 64)
    assert response.status_code == 403
    assert "UP-8" not in await ada.get_page_text("/console/cards")
