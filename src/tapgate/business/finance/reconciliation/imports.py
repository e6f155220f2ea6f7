"""Import of a bank statement: parse, store what is new, and match it.

The lines are stored before they are matched, because every match of a payout is a ledger command of
its own. If the process stops in between, a background worker matches the rest.
"""

import asyncio
import hashlib
from collections import Counter
from datetime import timedelta
from typing import Final, NoReturn

import msgspec

from tapgate.auth.actors import SYSTEM_ACTOR, Actor
from tapgate.business.approval_rules.queries import list_rules_in_force
from tapgate.business.finance.bank_accounts import queries as bank_accounts
from tapgate.business.finance.bank_accounts.model import BankAccount
from tapgate.business.finance.reconciliation import operations, queries
from tapgate.business.finance.reconciliation.line_commands import build_payout_command
from tapgate.business.finance.reconciliation.matching import (
    Effect,
    Match,
    find_all_references,
    fold_reference,
    match_lines,
)
from tapgate.business.finance.reconciliation.model import Line, Statement, to_record
from tapgate.business.finance.reconciliation.parsers.files import find_format, parse_file
from tapgate.business.finance.reconciliation.parsers.parsed import ParsedLine, ParsedStatement
from tapgate.core.records import require_id
from tapgate.events.audit.trail import AuditTrail
from tapgate.events.webhooks.webhook_events import publish
from tapgate.http.api.request_context import RequestContext
from tapgate.http.api.services import Services
from tapgate.ledger.commands import ScopedIdempotencyKey
from tapgate.runtime.background import do_for_each, run_periodically
from tapgate.runtime.store.rows import insert_row, map_conflicts
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code, invalid_field
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.bank_accounts import BankAccountOwner, BankAccountStatus
from tapgate_client.schemas.bank_statements import (
    BankStatementFormat,
    BankStatementQuery,
    CsvMapping,
    LineStatus,
)

_trail: Final = AuditTrail("bank_statement")
_COLUMNS: Final = queries.STORED_COLUMNS
#: Payouts that are marked at the same time.
_CONCURRENCY: Final = 50
_WORKER_INTERVAL_SECONDS: Final = 30.0
#: A request that takes longer has probably ended.
_WORKER_DELAY: Final = timedelta(minutes=5)


async def import_statement(
    request: RequestContext, query: BankStatementQuery, content: bytes
) -> tuple[Statement, bool]:
    """Return the statement, and whether the request is a replay."""
    services = request.services
    key = _build_key(request, content)
    file_format = query.format or find_format(content)
    chosen = await _find_account(request, query.bank_account_id, file_format)
    mapping = None if chosen is None else await queries.find_mapping(services.database, chosen.id)
    parsed = await asyncio.to_thread(
        _parse, content, file_format, services.settings.currency, mapping
    )
    account = chosen or await _find_by_number(services, parsed.account or "")
    if chosen is not None and parsed.account is not None:
        _require_same_number(chosen, parsed.account)
    async with services.transaction() as tx:
        statement_id, is_replay = await _store(tx, request, parsed, account, key)
    await match_statement(services, statement_id, request.actor)
    return await queries.get(services.database, statement_id), is_replay


def _parse(
    content: bytes, file_format: BankStatementFormat, currency: str, mapping: CsvMapping | None
) -> ParsedStatement:
    """Parse a file that can be stored and matched."""
    parsed = parse_file(content, file_format, currency, mapping)
    find_all_references(f"{line.reference or ''} {line.description or ''}" for line in parsed.lines)
    return parsed


def _build_key(request: RequestContext, content: bytes) -> ScopedIdempotencyKey | None:
    if request.idempotency_key is None:
        return None
    if not 1 <= len(request.idempotency_key) <= 64:
        raise invalid_field("Idempotency-Key", "must have 1 to 64 characters")
    facts = b"%s\n%s\n" % (request.path.encode(), request.query)
    return ScopedIdempotencyKey(
        request.principal.idempotency_scope,
        request.idempotency_key,
        hashlib.blake2b(facts + content, digest_size=16).digest(),
    )


async def _find_account(
    request: RequestContext, account_id: str | None, file_format: BankStatementFormat
) -> BankAccount | None:
    """Return the account that the request names, or for CSV the platform's only verified one."""
    database = request.services.database
    if account_id is not None:
        account = await bank_accounts.get(database, require_id(ids.BANK_ACCOUNT, account_id))
        if account.owner_type != BankAccountOwner.PLATFORM:
            raise ApiError(Code.BANK_ACCOUNT_NOT_FOUND)
        if account.status == BankAccountStatus.UNVERIFIED:
            raise ApiError(Code.BANK_ACCOUNT_NOT_VERIFIED)
        return account
    if file_format != BankStatementFormat.CSV:
        return None
    verified = await bank_accounts.list_verified(database, BankAccountOwner.PLATFORM, None)
    if len(verified) != 1:
        listed = [account.public_id for account in verified]
        raise ApiError(Code.BANK_ACCOUNT_NOT_VERIFIED, details={"accounts": listed})
    return verified[0]


async def _find_by_number(services: Services, number: str) -> BankAccount | None:
    """Return the platform's account with the number that a statement names."""
    accounts = await bank_accounts.list_verified(services.database, BankAccountOwner.PLATFORM, None)
    found = [account for account in accounts if _is_same_number(account.number, number)]
    return found[0] if len(found) == 1 else None


def _is_same_number(number: str, named: str) -> bool:
    """Return whether a statement means an account. MT940 puts the bank code before a slash."""
    return number in (named, named.rpartition("/")[2])


def _require_same_number(account: BankAccount, named: str) -> None:
    if not _is_same_number(account.number, named):
        raise invalid_field("bank_account_id", "must be the account of the statement")


async def _store(
    tx: Transaction,
    request: RequestContext,
    parsed: ParsedStatement,
    account: BankAccount | None,
    key: ScopedIdempotencyKey | None,
) -> tuple[int, bool]:
    """Store a statement and its new lines; return its ID, and whether it is a replay."""
    number = parsed.account or "" if account is None else account.number
    # Known lines are counted under this lock, which two imports for one account take in turn.
    await tx.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", f"statement {number}")
    if key is not None and (known := await _find_replay(tx, key)) is not None:
        return known, True
    days = [line.day for line in parsed.lines]
    known_lines = (
        await queries.count_known(tx, number, (min(days), max(days))) if days else Counter()
    )
    new = [line for line in parsed.lines if not _is_known(line, known_lines)]
    statement = Statement(
        id=tx.new_id(),
        format=parsed.format,
        account=number,
        bank_account_id=None if account is None else account.id,
        currency=request.services.settings.currency,
        from_day=parsed.from_day,
        to_day=parsed.to_day,
        opening_balance=parsed.opening_balance,
        closing_balance=parsed.closing_balance,
        skipped=len(parsed.lines) - len(new),
        created_by=request.admin_and_session_ids[0],
        created_at=tx.now(),
        matched_at=None,
    )
    with map_conflicts({"bank_statements_content": Code.DUPLICATE_REFERENCE}):
        await insert_row(
            tx,
            "bank_statements",
            statement,
            _COLUMNS,
            content_hash=_hash(parsed),
            scope=key and key.scope,
            request_id=key and key.request_id,
            fingerprint=key and key.fingerprint,
        )
    await _insert_lines(tx, statement, new)
    await _trail.record(
        tx,
        request.actor,
        statement.public_id,
        "imported",
        changes={
            "account": (None, to_record(statement).account),
            "lines": (None, len(new)),
            "skipped": (None, statement.skipped),
        },
    )
    return statement.id, False


async def _find_replay(tx: Transaction, key: ScopedIdempotencyKey) -> int | None:
    row = await tx.fetchrow(
        "SELECT id, fingerprint FROM bank_statements WHERE scope = $1 AND request_id = $2",
        key.scope,
        key.request_id,
    )
    if row is not None and row["fingerprint"] != key.fingerprint:
        raise ApiError(Code.DUPLICATE_REQUEST)
    return None if row is None else row["id"]


def _is_known(line: ParsedLine, known: Counter[tuple[object, ...]]) -> bool:
    """Return whether a line is known, and use up one of its earlier occurrences."""
    facts = (line.day, line.amount, line.reference or "")
    if known[facts] <= 0:
        return False
    known[facts] -= 1
    return True


def _hash(parsed: ParsedStatement) -> bytes:
    facts = (parsed.from_day, parsed.to_day, parsed.opening_balance, parsed.closing_balance)
    return hashlib.sha256(msgspec.json.encode([facts, parsed.lines])).digest()


async def _insert_lines(tx: Transaction, statement: Statement, lines: list[ParsedLine]) -> None:
    await tx.execute(
        """INSERT INTO bank_statement_lines
               (id, statement_id, account, day, amount, reference, description, status)
           SELECT id, $1, $2, day, amount, reference, description, 'unmatched'
           FROM unnest($3::bigint[], $4::date[], $5::bigint[], $6::text[], $7::text[])
             AS new (id, day, amount, reference, description)""",
        statement.id,
        statement.account,
        [tx.new_id() for _ in lines],
        [line.day for line in lines],
        [line.amount for line in lines],
        [line.reference for line in lines],
        [line.description for line in lines],
    )


async def match_statement(services: Services, statement_id: int, actor: Actor) -> None:
    """Match a statement's open lines, unless that is done; report once what is left."""
    statement = await queries.get(services.database, statement_id)
    if statement.matched_at is not None:
        return
    lines = {
        line.id: line for line in await queries.list_open_lines(services.database, statement_id)
    }
    if lines:
        matches = await _find_matches(services, statement_id, list(lines.values()))
        if await _needs_approval(services):
            returns = [match for match in matches if match.effect == Effect.RETURN]
            matches = [match for match in matches if match.effect != Effect.RETURN]
            await _propose(services, returns)
        for effect in (Effect.PAY, Effect.LINK, Effect.RETURN):
            chosen = [match for match in matches if match.effect == effect]
            for start in range(0, len(chosen), _CONCURRENCY):
                batch = chosen[start : start + _CONCURRENCY]
                await asyncio.gather(
                    *(_apply(services, lines[match.line_id], match, actor) for match in batch)
                )
    async with services.transaction() as tx:
        is_first = await tx.fetchval(
            """UPDATE bank_statements SET matched_at = $2 WHERE id = $1 AND matched_at IS NULL
               RETURNING true""",
            statement_id,
            tx.now(),
        )
        after = await queries.get(tx, statement_id)
        if is_first and after.unmatched:
            await publish(tx, "reconciliation.unmatched", to_record(after))


async def _needs_approval(services: Services) -> bool:
    """Return whether approval rules apply to returns, which only a person can request then."""
    rules = await list_rules_in_force(services.database)
    return any(rule.operation == Operation.REVERSALS for rule in rules)


async def _propose(services: Services, returns: list[Match]) -> None:
    await services.database.execute(
        """UPDATE bank_statement_lines SET proposed_payout_id = proposed.payout_id
           FROM unnest($1::bigint[], $2::bigint[]) AS proposed (line_id, payout_id)
           WHERE id = proposed.line_id AND status = 'unmatched'""",
        [match.line_id for match in returns],
        [match.target_id for match in returns],
    )


async def _find_matches(services: Services, statement_id: int, lines: list[Line]) -> list[Match]:
    database, zone = services.database, services.settings.timezone
    period = min(line.day for line in lines), max(line.day for line in lines)
    names = await asyncio.to_thread(find_all_references, [line.text for line in lines])
    credits = {line.amount for line in lines if line.amount > 0}
    references = {fold_reference(line.reference) for line in lines if line.amount > 0} - {""}
    payouts = await queries.list_payouts(
        database, names, {-line.amount for line in lines if line.amount < 0}, zone
    )
    deposits = await queries.list_deposits(database, references, credits, period, zone)
    amounts = {line.amount for line in lines}
    others = await queries.list_rivals(database, statement_id, amounts, period)
    return await asyncio.to_thread(match_lines, lines, payouts, deposits, others=others)


async def _apply(services: Services, line: Line, match: Match, actor: Actor) -> None:
    """Apply a match. If something else was faster, the line stays as it is."""
    try:
        if match.effect != Effect.LINK:
            command = build_payout_command(line, match.target_id, actor)
            (await services.ledger.submit(command)).require_accepted()
            return
        async with services.transaction() as tx:
            after = operations.replace_line(
                line, LineStatus.MATCHED, transaction_id=match.target_id
            )
            await operations.change_line(tx, actor, line, after, None)
    except ApiError as error:
        if error.status >= 500:
            raise


class StatementWorker:
    """Background worker that matches the statements of processes that stopped."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def run(self) -> NoReturn:
        await run_periodically(
            self.finish_statements, every=_WORKER_INTERVAL_SECONDS, name="statements.match"
        )

    async def finish_statements(self) -> None:
        services = self._services
        before = services.clock() - _WORKER_DELAY
        await do_for_each(
            await queries.list_unfinished(services.database, before),
            lambda statement_id: match_statement(services, statement_id, SYSTEM_ACTOR),
        )
