"""The navigation: pages grouped by job, at most 14 entries.

An entry with several pages opens and closes. A viewer sees the pages that the role may open, and
an entry with one such page is a plain link.
"""

from collections.abc import Callable, Collection
from enum import Enum, auto
from typing import Final, NamedTuple

from tapgate.sites.console.translation.translator import source_text
from tapgate_client.schemas.work_queues import WorkQueueName

HOME_PATH: Final = "/console"


class Feature(Enum):
    """What not every installation has."""

    SIMULATORS = auto()
    OTHER_BOOKS = auto()


class Page(NamedTuple):
    """Page in the navigation.

    `queues` are the work queues that its badge counts. `related` are the paths of pages that are
    not listed: the page's tabs lead to them.
    """

    path: str
    label: str
    endpoint: str | None = None  # None: for every admin
    queues: tuple[str, ...] = ()
    feature: Feature | None = None  # None: in every installation
    related: tuple[str, ...] = ()


class Entry(NamedTuple):
    label: str
    symbol: str
    pages: tuple[Page, ...]


class Group(NamedTuple):
    label: str
    entries: tuple[Entry, ...]


def link_page(symbol: str, page: Page) -> Entry:
    return Entry(page.label, symbol, (page,))


GROUPS: Final = (
    Group(
        "",
        (
            link_page("layout-dashboard", Page(HOME_PATH, "Home", "GET /api/v1/overview")),
            link_page(
                "list-checks",
                Page("/console/work", "My work", "GET /api/v1/work-items", tuple(WorkQueueName)),
            ),
        ),
    ),
    Group(
        "Customers",
        (
            link_page(
                "users", Page("/console/subscribers", "Customers", "GET /api/v1/subscribers")
            ),
            Entry(
                "Cards",
                "credit-card",
                (
                    Page("/console/cards", "Cards", "GET /api/v1/cards"),
                    Page("/console/keysets", "Card keys", "GET /api/v1/cards/keysets"),
                ),
            ),
            Entry(
                "Support",
                "headset",
                (
                    Page(
                        "/console/support",
                        "Support",
                        "GET /api/v1/support/requests",
                        (WorkQueueName.SUPPORT_REQUESTS,),
                    ),
                    Page(
                        "/console/saved-replies",
                        "Saved replies",
                        "GET /api/v1/support/saved-replies",
                    ),
                    Page(
                        "/console/disputes",
                        "Disputes",
                        "GET /api/v1/disputes",
                        (WorkQueueName.DISPUTES,),
                    ),
                ),
            ),
        ),
    ),
    Group(
        "Money",
        (
            Entry(
                "Transactions",
                "arrow-left-right",
                (
                    Page("/console/transactions", "Transactions", "GET /api/v1/transactions"),
                    Page(
                        "/console/recalls",
                        "Recalls",
                        "GET /api/v1/recalls",
                        (WorkQueueName.RECALLS,),
                    ),
                ),
            ),
            Entry(
                "Merchants",
                "store",
                (
                    Page("/console/processors", "Merchants", "GET /api/v1/processors"),
                    Page("/console/partners", "Partners", "GET /api/v1/admin/partners"),
                ),
            ),
            Entry(
                "Agents",
                "hand-coins",
                (
                    Page(
                        "/console/agents",
                        "Agents",
                        "GET /api/v1/agents",
                        (WorkQueueName.LOW_FLOAT,),
                    ),
                    Page(
                        "/console/float-requests",
                        "Float requests",
                        "GET /api/v1/float-requests",
                        (WorkQueueName.FLOAT_REQUESTS,),
                    ),
                ),
            ),
            Entry(
                "Finance",
                "book-open-text",
                (
                    Page("/console/finance", "Finance", "GET /api/v1/reports/safeguarding"),
                    Page(
                        "/console/payouts",
                        "Payouts",
                        "GET /api/v1/payouts",
                        (WorkQueueName.PAYOUTS,),
                        related=("/console/payout-runs",),
                    ),
                    Page("/console/batches", "Batches", "GET /api/v1/batches"),
                    Page(
                        "/console/book-transfers",
                        "Book transfers",
                        "GET /api/v1/books/transfers",
                        feature=Feature.OTHER_BOOKS,
                    ),
                    Page("/console/bank-accounts", "Bank accounts", "GET /api/v1/bank-accounts"),
                    Page(
                        "/console/bank-statements",
                        "Bank statements",
                        "GET /api/v1/bank-statements",
                    ),
                    Page("/console/ledger", "General ledger", "GET /api/v1/ledger/accounts"),
                ),
            ),
            link_page("gauge", Page("/console/reports", "Reports", "GET /api/v1/overview")),
        ),
    ),
    Group(
        "Control",
        (
            Entry(
                "Compliance",
                "shield-alert",
                (
                    Page(
                        "/console/compliance",
                        "Alerts",
                        "GET /api/v1/compliance/alerts",
                        (WorkQueueName.ALERTS, WorkQueueName.HELD_PAYMENTS),
                    ),
                    Page(
                        "/console/kyc",
                        "KYC review",
                        "GET /api/v1/kyc-reviews",
                        (WorkQueueName.KYC_REVIEWS,),
                    ),
                ),
            ),
            link_page(
                "stamp",
                Page(
                    "/console/approvals",
                    "Approvals",
                    "GET /api/v1/approvals",
                    (WorkQueueName.APPROVALS,),
                ),
            ),
        ),
    ),
    Group(
        "Setup",
        (
            Entry(
                "Developers",
                "code-xml",
                (
                    Page("/console/api-keys", "API keys", "GET /api/v1/admin/api-keys"),
                    Page(
                        "/console/webhooks",
                        "Webhooks",
                        "GET /api/v1/admin/webhook-endpoints",
                        (WorkQueueName.FAILING_WEBHOOKS,),
                    ),
                    Page("/console/request-logs", "API requests", "GET /api/v1/admin/request-logs"),
                    Page("/guide/api", source_text("API reference")),
                    Page("/guide", "Guide"),
                    Page("/stage", source_text("Stage"), feature=Feature.SIMULATORS),
                    Page(
                        "/simulator/pos", source_text("POS simulator"), feature=Feature.SIMULATORS
                    ),
                    Page("/simulator/phone", "Phone simulator", feature=Feature.SIMULATORS),
                ),
            ),
            Entry(
                "System",
                "settings",
                (
                    Page(
                        "/console/limits",
                        "Limits and fees",
                        "GET /api/v1/account-rules/{kyc_level}",
                    ),
                    Page("/console/administrators", "Administrators", "GET /api/v1/admin/users"),
                    Page("/console/audit", "Audit log", "GET /api/v1/audit/logs"),
                    Page("/console/nodes", "Nodes", "GET /api/v1/system/nodes"),
                    Page("/console/settings", "Settings", "GET /api/v1/system/settings"),
                ),
            ),
        ),
    ),
)


def build_navigation(
    can_access: Callable[[str], bool],
    features: Collection[Feature],
    path: str,
    all_groups: Collection[Group] = GROUPS,
) -> list[Group]:
    """Return the groups and entries with only the pages that the viewer may open.

    The page at `path` is included even if the installation lacks its feature.
    """
    groups = []
    for group in all_groups:
        entries = []
        for entry in group.entries:
            pages = tuple(
                page
                for page in entry.pages
                if (page.feature is None or page.feature in features or is_current(page, path))
                and (page.endpoint is None or can_access(page.endpoint))
            )
            if pages:
                entries.append(entry._replace(pages=pages))
        if entries:
            groups.append(group._replace(entries=tuple(entries)))
    return groups


def is_current(page: Page, path: str) -> bool:
    """Return whether a page, a page below it, or a related page is open."""
    is_home = page.path.count("/") == 1
    return path == page.path or (
        not is_home
        and any(f"{path}/".startswith(f"{parent}/") for parent in (page.path, *page.related))
    )
