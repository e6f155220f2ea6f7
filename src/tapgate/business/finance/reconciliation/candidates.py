"""What a person could match a statement line with."""

from typing import Any

from tapgate.business.finance.reconciliation import queries
from tapgate.business.finance.reconciliation.matching import find_references
from tapgate.business.finance.reconciliation.model import Line, to_line_record
from tapgate.core.id_generator import get_time
from tapgate.http.api.services import Services
from tapgate_client import ids, money
from tapgate_client.clock import get_platform_day
from tapgate_client.schemas.bank_statements import MatchCandidate, MatchCandidates


async def list_candidates(services: Services, line_id: int) -> MatchCandidates:
    database, settings = services.database, services.settings
    line = await queries.get_line(database, line_id)
    references = find_references(line.text)
    payouts = await queries.list_candidate_payouts(database, line, references)
    deposits = await queries.list_candidate_deposits(database, line) if line.amount > 0 else ()

    def build(row: Any, *, moment: Any, **target: str | None) -> MatchCandidate:
        return MatchCandidate(
            **{"payout_id": None, "transaction_id": None} | target,
            name=row["holder_name"],
            amount=money.format_decimal(row["amount"], settings.currency),
            date=get_platform_day(moment, settings.timezone).isoformat(),
            reference=row["reference"],
        )

    found = [
        build(row, moment=row["updated_at"], payout_id=ids.encode(ids.PAYOUT, row["id"]))
        for row in payouts
    ]
    found += [
        build(
            row, moment=get_time(row["id"]), transaction_id=ids.encode(ids.TRANSACTION, row["id"])
        )
        for row in deposits
    ]
    return MatchCandidates(
        line=to_line_record(line, settings.currency), data=_sort(found, line, references)
    )


def _sort(found: list[MatchCandidate], line: Line, references: set[str]) -> list[MatchCandidate]:
    """Put what the line names first, and the others by their distance from its date."""
    day = line.day.isoformat()

    def get_rank(candidate: MatchCandidate) -> tuple[bool, bool, str]:
        named = candidate.reference is not None and (
            candidate.reference in references or candidate.reference == line.reference
        )
        return not named, candidate.date > day, candidate.date

    return sorted(found, key=get_rank)
