"""The portal's navigation. A viewer sees the pages whose endpoint the role may call."""

from typing import Final

from tapgate.sites.console.navigation import Page
from tapgate.sites.console.page_request import PORTAL, PageRequest

PAGES: Final = (Page(PORTAL, "Home", "GET /api/v1/me/owner"),)


def list_pages(request: PageRequest) -> list[Page]:
    return [page for page in PAGES if page.endpoint is None or request.can_access(page.endpoint)]
