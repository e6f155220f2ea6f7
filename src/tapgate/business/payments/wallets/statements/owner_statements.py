"""Statements for processors, partners and agents."""

from typing import Final

from tapgate.auth.actors import Actor
from tapgate.auth.owners import Owner
from tapgate.business.owners.queries import get_main_account
from tapgate.business.payments.wallets.statements import operations, queries
from tapgate.business.payments.wallets.statements.model import Period, Statement
from tapgate.business.payments.wallets.statements.operations import StatementLink
from tapgate.business.payments.wallets.statements.queries import StatementFile
from tapgate.events.audit.trail import AuditTrail
from tapgate.http.api.services import Services
from tapgate.runtime import retention
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import ApiError, Code

_MAX_FILES: Final = 100


async def build_statement(services: Services, owner: Owner, period: Period) -> Statement:
    """Return a statement of an owner's account; an agent's is the float."""
    account = await get_main_account(services.database, owner)
    zone = services.settings.timezone
    activity = await queries.load_activity(
        await services.get_report_database(),
        account.id,
        period.start(zone),
        period.end(zone),
        queries.to_owner_movement,
    )
    return Statement(
        id=services.new_id(),
        holder_id=owner.public_id,
        account_id=account.id,
        holder_name=account.holder_name,
        phone_number=None,
        currency=account.currency,
        zone=zone,
        period=period,
        opening_balance=activity.opening_balance,
        movements=activity.movements,
        generated_at=services.clock(),
    )


async def issue_file(
    tx: Transaction, actor: Actor, owner: Owner, statement: Statement, file: StatementFile
) -> StatementLink:
    """Store a file and return its link."""
    await tx.execute("SELECT FROM accounts WHERE id = $1 FOR UPDATE", statement.account_id)
    if await queries.count_owner_files(tx, owner.id) >= _MAX_FILES:
        raise ApiError(
            Code.RATE_LIMITED,
            f"There are {_MAX_FILES} statement files already, which expire after 24 hours.",
            headers={"Retry-After": str(retention.INTERVAL_SECONDS)},
        )
    link = operations.new_link(statement)
    await queries.add_file(
        tx,
        file,
        owner_id=owner.id,
        token_hash=operations.hash_token(tx.vault, link.token),
        created_at=statement.generated_at,
        expires_at=link.expires_at,
    )
    await AuditTrail(owner.type).record(tx, actor, owner.public_id, "statement_issued")
    return link
