"""docs/console.md lists every navigation page, and docs/inventory.md all browser storage."""

import re
from pathlib import Path

import tapgate.sites.console
import tapgate_sandbox.simulators
from tapgate.sites.console.navigation import GROUPS

ROOT = Path(__file__).parents[2]
CONSOLE = Path(tapgate.sites.console.__file__).parent
SIMULATORS = Path(tapgate_sandbox.simulators.__file__).parent


def find_section(document: str, heading: str) -> str:
    text = (ROOT / "docs" / document).read_text()
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def test_every_navigation_page_is_documented() -> None:
    every_page = [page for group in GROUPS for entry in group.entries for page in entry.pages]
    pages = [page.label for page in every_page if page.path.startswith("/console")]
    rows = re.findall(r"^\| ([^|]+) \|", find_section("console.md", "Pages"), re.MULTILINE)
    documented = {page for row in rows for page in row.split(", ")} - {"Page", "---"}
    assert len(pages) > 10
    assert documented == set(pages)


def test_all_browser_storage_is_documented() -> None:
    scripts = [*CONSOLE.glob("assets/*.js"), *SIMULATORS.glob("assets/*.js")]
    texts = [script.read_text() for script in scripts if script.name != "htmx.min.js"]
    assert not re.search(r"localStorage|indexedDB", "".join(texts))
    storing_texts = [text for text in texts if "sessionStorage" in text]
    stored = {re.findall(r'STORAGE_KEY = "([^"]+)"', text)[0] for text in storing_texts}
    cookies = set(re.findall(r'"((?:__Host-)?tapgate_\w+)"', (CONSOLE / "session.py").read_text()))
    cookies |= set(re.findall(r"document\.cookie = `(\w+)=", "".join(texts)))
    assert "".join(texts).count("document.cookie") == 1
    assert len(stored) > 1 and len(cookies) > 2
    documented = find_section("inventory.md", "Browser storage")
    assert [name for name in stored | cookies if f"`{name}`" not in documented] == []
