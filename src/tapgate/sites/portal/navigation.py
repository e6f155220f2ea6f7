"""The portal's navigation. A viewer sees the pages whose endpoint the role may call."""

from typing import Final

from tapgate.sites.console.navigation import Group, Page, build_navigation, link_page
from tapgate.sites.console.page_request import PORTAL, PageRequest

GROUPS: Final = (
    Group(
        "",
        (link_page("layout-dashboard", Page(PORTAL, "Home", "GET /api/v1/me/owner")),),
    ),
    Group(
        "Money",
        (
            link_page(
                "arrow-left-right",
                Page(f"{PORTAL}/transactions", "Payments", "GET /api/v1/transactions"),
            ),
            link_page(
                "banknote-arrow-up", Page(f"{PORTAL}/payouts", "Payouts", "GET /api/v1/payouts")
            ),
            link_page(
                "circle-alert", Page(f"{PORTAL}/disputes", "Disputes", "GET /api/v1/disputes")
            ),
            link_page(
                "file-text",
                Page(f"{PORTAL}/statements", "Statements", "POST /api/v1/statements"),
            ),
        ),
    ),
    Group(
        "Business",
        (
            link_page(
                "smartphone",
                Page(f"{PORTAL}/terminals", "Terminals", "GET /api/v1/processors/{id}/terminals"),
            ),
            link_page("users", Page(f"{PORTAL}/team", "Team", "GET /api/v1/admin/users")),
            link_page("stamp", Page(f"{PORTAL}/approvals", "Approvals", "GET /api/v1/approvals")),
            link_page(
                "code-xml",
                Page(
                    f"{PORTAL}/webhooks",
                    "Developers",
                    "GET /api/v1/admin/webhook-endpoints",
                    related=(f"{PORTAL}/request-logs", f"{PORTAL}/api"),
                ),
            ),
        ),
    ),
    Group(
        "Help",
        (
            link_page(
                "headset", Page(f"{PORTAL}/support", "Support", "GET /api/v1/support/requests")
            ),
        ),
    ),
)


def list_groups(request: PageRequest) -> list[Group]:
    return build_navigation(request.can_access, (), request.context.path, GROUPS)
