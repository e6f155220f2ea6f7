"""The endpoints of compliance rules."""

from tapgate.compliance.rules import operations, queries
from tapgate.compliance.rules.model import RuleRecord, Update, WatchRule, read_id, shown
from tapgate.edge.call import Call
from tapgate.edge.endpoint import Access, Endpoints
from tapgate.edge.pages import Page, PageQuery, cut
from tapgate.errors import Code

endpoints = Endpoints("Compliance")

_ACCESS = Access(roles="AC")


@endpoints.get("/api/v1/compliance/rules", access=_ACCESS)
async def list_rules(call: Call, query: PageQuery) -> Page[RuleRecord]:
    """List the rules that payments are watched by, newest first."""
    currency = call.services.settings.currency

    def show(rule: WatchRule) -> RuleRecord:
        return shown(rule, currency)

    rows = await queries.page(call.services.database, query)
    return cut(rows, query.limit, key=lambda rule: rule.id, show=show)


@endpoints.get("/api/v1/compliance/rules/{id}", access=_ACCESS, errors=(Code.RULE_NOT_FOUND,))
async def get_rule(call: Call, id: str) -> RuleRecord:
    """Get a rule."""
    rule = await queries.get(call.services.database, read_id(id))
    return shown(rule, call.services.settings.currency)


@endpoints.put(
    "/api/v1/compliance/rules/{id}",
    access=_ACCESS,
    errors=(Code.RULE_NOT_FOUND, Code.CURRENCY_NOT_SUPPORTED),
)
async def update_rule(call: Call, id: str, body: Update) -> RuleRecord:
    """Change a rule.

    What is left out stays as it is. The threshold is an amount or, for TRANSACTION_COUNT and
    PIN_FAILURES, a count; what is more than it matches. Rules watch what subscribers pay.
    """
    rule = await operations.update(call, read_id(id), body)
    return shown(rule, call.services.settings.currency)
