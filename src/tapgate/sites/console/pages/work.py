"""Everything that waits for the signed-in admin, in one list."""

from typing import Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console.components.work_items import QUEUES, load_work
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.site import Pages

pages = Pages()

_MAX_ITEMS: Final = 100


@pages.get("/console/work")
async def show_work(request: PageRequest) -> Reply[bytes]:
    rows, has_more = await load_work(request, _MAX_ITEMS)
    queue = request.query.get("queue")
    return request.render(
        "work.html",
        rows=[row for row in rows if queue in (None, row.item["queue"])],
        has_more=has_more,
        queue=queue,
        queues={name: QUEUES[name] for name in request.work_queues if name in QUEUES},
        counts={name: sum(row.item["queue"] == name for row in rows) for name in QUEUES},
        total=len(rows),
    )
