"""The guide renders every document in docs/, with working links, search and helpful errors."""

import asyncio
import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path

import httpx2
import pytest

from builders.http_apps import run_edge_app
from tapgate.sites.guide.contents import SECTIONS
from tapgate.sites.guide.markdown import render
from tapgate.sites.guide.site import GuideSite

DOCS = Path(__file__).parents[3] / "docs"
SITE = GuideSite()

INTERNAL_LINK = re.compile(r'(?:href|src)="(/guide[^"#]*)(?:#([^"]*))?"')
ID = re.compile(r' id="([^"]*)"')


@pytest.fixture
async def guide(tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    async with run_edge_app(tmp_path, [SITE], TAPGATE_RATE_LIMIT_BURST="10000") as gateway:
        yield gateway.client


async def test_every_document_is_a_page_without_inline_code(guide: httpx2.AsyncClient) -> None:
    sources = {path.relative_to(DOCS) for path in DOCS.rglob("*.md")}
    assert len(SITE.contents.documents) == len(sources) + 1  # SECURITY.md is not in docs/
    for url in ("/guide", "/guide/signing", "/guide/api/pos", "/guide/security"):
        page = await guide.get(url)
        assert page.status_code == 200
        assert "script-src 'self'" in page.headers["content-security-policy"]
        assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?! src=\"/guide/)", page.text)
        cached = await guide.get(url, headers={"If-None-Match": page.headers["etag"]})
        assert (cached.status_code, cached.content) == (304, b"")
        for asset in re.findall(r'"(/guide/assets/[^"]+)"', page.text):
            assert (await guide.get(asset)).status_code == 200, asset


def test_links_and_anchors_between_pages_resolve() -> None:
    """Checks the hand-written documents. `test_readme.py` checks the sources of all documents."""
    pages = {
        document.url: SITE.build_reply(document.slug).body.decode()
        for document in SITE.contents.documents
        if document.section in ("Get started", "Guides", "Build")
    }
    known = {document.url for document in SITE.contents.documents}
    known |= {f"/guide/{name}" for name in SITE.contents.files} | {"/guide/search"}
    for url, page in pages.items():
        for target, anchor in INTERNAL_LINK.findall(page):
            assert target in known or target.startswith("/guide/assets/"), (url, target)
            if anchor and target in pages:
                assert unescape(anchor) in ID.findall(pages[target]), (url, target, anchor)


def test_adjacent_examples_in_different_languages_are_tabs() -> None:
    def fence(language: str) -> str:
        return f"```{language}\n1\n```\n\n"

    html = render("".join(map(fence, ("sh", "python", "ts", "output", "python"))), str).html
    assert html.count('<div class="tabs">') == 1
    assert re.findall(r'value="(\w+)"( checked)?', html) == [
        ("sh", " checked"),
        ("python", ""),
        ("ts", ""),
    ]
    assert html.count("<div") == html.count("</div>")
    for languages in (("python",), ("python", "python"), ("json", "python"), ("output", "sh")):
        assert "tabs" not in render("".join(map(fence, languages)), str).html, languages


def test_table_with_many_columns_is_a_list_of_records_with_labels() -> None:
    narrow, wide = (
        "\n".join("|" + row * columns for row in (" A |", " --- |", " `x` |")) for columns in (4, 5)
    )
    assert 'class="table wide"' not in render(narrow, lambda link: link).html
    page = render(wide, lambda link: link).html
    assert 'class="table wide"' in page
    assert page.count('<td data-label="A"><code>x</code></td>') == 5


async def test_handbook_can_be_read_in_both_languages(guide: httpx2.AsyncClient) -> None:
    for name in ("agent", "customer"):
        english = (await guide.get(f"/guide/handbooks/{name}")).text
        french = (await guide.get(f"/guide/handbooks/fr/{name}")).text
        assert f'<a href="/guide/handbooks/fr/{name}" hreflang="fr" lang="fr">' in english
        assert f'<a href="/guide/handbooks/{name}" hreflang="en" lang="en">' in french
        assert '<article class="prose" lang="fr">' in french
        assert f'<li><a href="/guide/handbooks/fr/{name}"' not in english
    assert "hreflang" not in (await guide.get("/guide/handbooks/cashier")).text


def test_handbooks_are_listed_without_the_name_of_their_section() -> None:
    labels = {document.slug: document.label for document in SITE.contents.documents}
    assert labels["handbooks/agent-manager"] == "Agent manager"
    assert labels["runbooks/disk-full"] == "Disk full"
    assert labels["webhooks"] == "Webhooks"


def test_navigation_names_only_existing_documents() -> None:
    named = {slug for slugs in SECTIONS.values() for slug in slugs if not slug.endswith("*")}
    assert named <= SITE.contents.by_slug.keys()


def test_markdown_escapes_html_and_renders_tables_code_and_checklists() -> None:
    text = (
        "# A\n\n<!-- note -->\n\n## Use `x`\n\n## Use `x`\n\n"
        "<b>bold</b> [in](b.md#c) [out](../x)\n\n"
        "| a | b |\n|---|---|\n| 1 | <i> |\n\n- [ ] to do\n\n```sh\necho '<x>'\n```\n"
    )
    html, headings = render(text, lambda link: f"/{link}" if link.startswith("b") else None)
    assert [(item.level, item.text, item.anchor) for item in headings[1:]] == [
        (2, "Use x", "use-x"),
        (2, "Use x", "use-x-1"),
    ]
    for part in ('<a href="/b.md#c">in</a>', "<span>out</span>", "&lt;b&gt;", "<table>",
                 "&lt;i&gt;", 'type="checkbox"', "&lt;x&gt;", 'data-language="sh"'):  # fmt: skip
        assert part in html
    assert "<!--" not in html and "<b>" not in html


async def test_search_finds_sections_by_all_words(guide: httpx2.AsyncClient) -> None:
    found = (await guide.get("/guide/search", params={"q": "insufficient_funds"})).text
    assert found.index("/guide/errors#insufficient_funds") > 0
    assert "<mark>INSUFFICIENT_FUNDS</mark>" in found
    hostile = "<script>alert(1)</script>" + "x" * 500
    fragment = await guide.get("/guide/search", params={"q": hostile, "fragment": "1"})
    assert fragment.status_code == 200
    assert "No results for" in fragment.text and "<script" not in fragment.text
    assert "<html" not in fragment.text
    empty = await guide.get("/guide/search")
    assert empty.status_code == 200 and "No results" not in empty.text


async def test_short_words_are_ignored_next_to_others(guide: httpx2.AsyncClient) -> None:
    plain = await guide.get("/guide/search", params={"q": "settlement", "fragment": "1"})
    longer = await guide.get("/guide/search", params={"q": "a settlement of x", "fragment": "1"})
    assert plain.text == longer.text
    assert "<mark>" in (await guide.get("/guide/search", params={"q": "a"})).text


async def test_searches_are_limited_per_address(guide: httpx2.AsyncClient) -> None:
    # In parallel, all are counted at once, however slow the machine is.
    responses = await asyncio.gather(
        *(guide.get("/guide/search", params={"q": "x", "fragment": "1"}) for _ in range(60))
    )
    statuses = [response.status_code for response in responses]
    assert set(statuses) == {200, 429}
    assert statuses.count(200) >= 30
    assert (await guide.get("/guide")).status_code == 200


async def test_unknown_page_suggests_similar_pages(guide: httpx2.AsyncClient) -> None:
    missing = await guide.get("/guide/signin")
    assert missing.status_code == 404
    assert 'href="/guide/signing"' in missing.text
    for path, target in (
        ("/guide/signing.md", "/guide/signing"),
        ("/guide/api/README.md", "/guide/api"),
        ("/guide/Errors/", "/guide/errors"),
    ):
        moved = await guide.get(path)
        assert (moved.status_code, moved.headers["location"]) == (308, target)
    assert (await guide.post("/guide/errors")).status_code == 405


@pytest.mark.parametrize(
    "path",
    ["..%2f..%2fpyproject.toml", "%2e%2e/%2e%2e/pyproject.toml", "assets/..%2fsite.py", "site.py",
     "assets/console.css", "documents/signing.md", "x" * 3000],
)  # fmt: skip
async def test_other_files_are_not_served(guide: httpx2.AsyncClient, path: str) -> None:
    count = len(SITE.replies)
    assert (await guide.get(f"/guide/{path}")).status_code == 404
    assert len(SITE.replies) == count
