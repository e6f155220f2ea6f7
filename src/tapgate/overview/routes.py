"""The endpoints about the platform as a whole."""

from tapgate.edge.endpoint import Access, Endpoints
from tapgate.edge.request_context import RequestContext
from tapgate.overview import operations
from tapgate.overview.model import LedgerProof, Overview, OverviewQuery, to_ledger_proof

endpoints = Endpoints("Overview")


@endpoints.get("/api/v1/overview", access=Access(roles="ACSF"))
async def get_overview(call: RequestContext, query: OverviewQuery) -> Overview:
    """Tell how the platform is doing.

    What moved in the last 24 hours by hour, or in the last 7 or 30 days by day of the platform's
    time zone; the last of them is not over yet. These figures are exact at any moment.
    `standing` is what there is, counted at `as_of`, a few seconds ago. `alerts` are the open ones,
    and beside them how many are being investigated; null for who may not list alerts. `engine` is
    of this node: how long the ledger's batches and the requests that move money took.
    """
    return await operations.get_overview(call, query.period)


@endpoints.post("/api/v1/ledger/verify", access=Access(roles="A"))
async def verify_ledger(call: RequestContext) -> LedgerProof:
    """Prove the books now.

    The same as `tapgate verify` does for the books, in one snapshot, and recorded like it. With
    millions of transactions it takes many seconds; payments go on meanwhile. One at a time: while
    one is under way, another is answered 429. Books that do not hold are answered 200 too, with
    `holds` false and, for each claim, how many contradict it and some of them.
    """
    return to_ledger_proof(*await operations.verify_ledger(call))
