"""Templates, scripts and pages contain no inline code, foreign hosts or unescaped HTML."""

import re
from pathlib import Path

import tapgate.sites.console
import tapgate_sandbox.simulators
from drivers.console import ConsoleClient
from harness import Harness
from tapgate.sites.console.console import PAGES

_FOLDERS = [Path(site.__path__[0]) for site in (tapgate.sites.console, tapgate_sandbox.simulators)]
_TEMPLATES = sorted(path for folder in _FOLDERS for path in folder.rglob("*.html"))
_SCRIPTS = sorted(path for folder in _FOLDERS for path in folder.rglob("*.js"))

_COMMENT = re.compile(r"{#.*?#}", re.DOTALL)
_TAG = re.compile(r"<[a-zA-Z][^<>]*(?:<[^<>]*>[^<>]*)*>")
_FORBIDDEN_PATTERNS = {
    "an event handler": re.compile(r"\son[a-z]+\s*=", re.IGNORECASE),
    "a style attribute": re.compile(r"\sstyle\s*=", re.IGNORECASE),
    "a style element": re.compile(r"<style\b", re.IGNORECASE),
    "an inline script": re.compile(r"<script\b(?![^>]*\ssrc=\"(?:{{ site }})?/)", re.IGNORECASE),
    "a javascript: URL": re.compile(r"javascript:", re.IGNORECASE),
    "another host": re.compile(r"(?:src|href|action|hx-\w+)=[\"'](?:https?:)?//", re.IGNORECASE),
    "an htmx expression": re.compile(r"hx-on|hx-vals=[\"']js:|hx-trigger=[\"'][^\"']*\["),
    "disabled escaping": re.compile(r"\|\s*safe\b|autoescape\s+false|Markup\("),
}


def find_inline_code(text: str) -> list[str]:
    return [
        description for description, pattern in _FORBIDDEN_PATTERNS.items() if pattern.search(text)
    ]


def test_scan_detects_every_kind_of_inline_code() -> None:
    for text in (
        '<a onclick="x()">', '<p style="x">', "<style>", "<script>x</script>",
        '<a href="javascript:x">', '<img src="//evil">', '<p hx-on:click="x">', "{{ x | safe }}",
    ):  # fmt: skip
        assert find_inline_code(text), text
    assert not find_inline_code('<script src="/console/assets/htmx.min.js" defer></script>')


def test_templates_contain_no_inline_code() -> None:
    assert len(_TEMPLATES) > 15
    for template in _TEMPLATES:
        assert find_inline_code(_COMMENT.sub("", template.read_text())) == [], template


def test_scripts_do_not_build_html_from_strings() -> None:
    assert len(_SCRIPTS) > 10
    for script in _SCRIPTS:
        if script.name != "htmx.min.js":
            assert not re.search(r"innerHTML|outerHTML|insertAdjacent|eval\(", script.read_text())


async def test_rendered_pages_contain_no_inline_code(ada: ConsoleClient, harness: Harness) -> None:
    """Covers every page without path parameters, with injection payloads in names and queries."""
    person = await harness.create_subscriber_with_old_name(
        "<script>alert(1)</script>", "\"' onclick='alert(1)"
    )
    await harness.create_card(person["id"])
    await ada.submit_action(
        "api_key.create", {"name": "<script>alert(1)</script>", "scopes": ["cards:read"]}
    )
    await ada.submit_action(
        "administrator.create",
        {"name": '"><img src=x onerror=alert(1)>', "email": "x@example.com",
         "role": "support_user", "password": "a long enough password"},
    )  # fmt: skip
    await ada.submit_action(
        "webhook.create", {"url": "http://example.com/'onclick='x", "events": ["*"]}
    )
    pages = {page.path for pages in PAGES for page in pages if page.method == "GET"}
    for path in sorted(path for path in pages if "{" not in path):
        for query in ("", "?search=%22%3E%3Cscript%3E", "?event=%22+onclick=%22x&status=%3Cb%3E"):
            response = await ada.get(path + query)
            assert response.status_code < 500, path
            for tag in _TAG.findall(response.text):
                assert not _FORBIDDEN_PATTERNS["an inline script"].search(tag), tag
                without_values = re.sub(r'"[^"]*"|\'[^\']*\'', '""', tag)
                assert not _FORBIDDEN_PATTERNS["an event handler"].search(without_values), tag
                assert not _FORBIDDEN_PATTERNS["a style attribute"].search(without_values), tag
            assert "<img src=x" not in response.text
