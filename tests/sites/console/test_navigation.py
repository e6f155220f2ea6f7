"""Every console page highlights where it is in the navigation."""

import re
from itertools import chain

from drivers.console import ConsoleClient
from tapgate.sites.console.console import PAGES
from tapgate.sites.console.navigation import GROUPS, Feature

_PARAMETER = re.compile(r"{\w+}")
#: Paths that never show a page, only errors: a file, and a redirect to the identity provider.
_NO_PAGES = {"/console/export/{name}", "/console/sso/verify"}


async def test_every_page_highlights_exactly_one_entry(ada: ConsoleClient) -> None:
    """A page of an unknown record shows its error with the same navigation."""
    highlighted = {}
    for route in chain.from_iterable(PAGES):
        if route.method == "GET" and not route.is_public and route.path not in _NO_PAGES:
            response = await ada.get(_PARAMETER.sub("none", route.path))
            header = response.text.partition('<header class="bar">')[2].partition("</header>")[0]
            if header:  # not a file, a fragment or a redirect
                highlighted[route.path] = header.count(' aria-current="page"')
    assert {path: count for path, count in highlighted.items() if count != 1} == {}
    assert len(highlighted) > 60
    assert {"/console/search", "/console/account", "/console/payout-runs"} <= highlighted.keys()


async def test_page_without_its_feature_is_listed_only_while_it_is_open(
    ada: ConsoleClient,
) -> None:
    pages = chain.from_iterable(entry.pages for group in GROUPS for entry in group.entries)
    (path,) = [page.path for page in pages if page.feature == Feature.OTHER_BOOKS]
    assert f'href="{path}"' not in await ada.get_page_text("/console")
    page = await ada.get_page_text(path)
    assert f'href="{path}" aria-current="page"' in page and "no other books" in page
