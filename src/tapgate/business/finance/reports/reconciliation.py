"""Reconciliation report: statement lines by status, and the oldest one that is unmatched."""

from datetime import date
from typing import Any

from tapgate.business.finance.reconciliation.model import Line, to_line_record
from tapgate.business.finance.reports.documents import Column, Document
from tapgate.runtime.store.conditions import Conditions
from tapgate.runtime.store.database import Database
from tapgate_client import money
from tapgate_client.errors import invalid_field
from tapgate_client.schemas.bank_statements import LineStatus
from tapgate_client.schemas.finance_reports import (
    LineTotals,
    ReconciliationQuery,
    ReconciliationReport,
)


async def build_report(
    database: Database, query: ReconciliationQuery, currency: str
) -> ReconciliationReport:
    if query.from_ is not None and query.to is not None and query.from_ > query.to:
        raise invalid_field("to", "must not be before from")
    conditions = Conditions()
    conditions.where("day >= {}", query.from_ and date.fromisoformat(query.from_))
    conditions.where("day <= {}", query.to and date.fromisoformat(query.to))
    rows = await database.fetch(
        f"""SELECT status, count(*) AS count,
                   coalesce(sum(amount) FILTER (WHERE amount > 0), 0)::bigint AS received,
                   coalesce(-sum(amount) FILTER (WHERE amount < 0), 0)::bigint AS paid
            FROM bank_statement_lines WHERE {conditions} GROUP BY status""",
        *conditions.values,
    )
    oldest = await database.fetchrow(
        f"""SELECT {", ".join(Line.__struct_fields__)} FROM bank_statement_lines
            WHERE status = 'unmatched' AND {conditions} ORDER BY day, id LIMIT 1""",
        *conditions.values,
    )
    by_status = {row["status"]: row for row in rows}
    return ReconciliationReport(
        from_=query.from_,
        to=query.to,
        currency=currency,
        data=[_build_totals(status, by_status.get(status), currency) for status in LineStatus],
        oldest_unmatched=None if oldest is None else to_line_record(Line(**oldest), currency),
    )


def _build_totals(status: LineStatus, row: Any, currency: str) -> LineTotals:
    count, received, paid = (0, 0, 0) if row is None else tuple(row)[1:]
    return LineTotals(
        status=status,
        count=count,
        received=money.format_decimal(received, currency),
        paid=money.format_decimal(paid, currency),
        amount=money.format_decimal(received - paid, currency),
    )


def describe(report: ReconciliationReport) -> Document:
    oldest = report.oldest_unmatched
    rows = [
        (str(row.status), str(row.count), row.received, row.paid, row.amount) for row in report.data
    ]
    if oldest is not None:
        rows.append((f"oldest unmatched line: {oldest.date}", "", "", "", oldest.amount))
    first, last = report.from_ or "", report.to or ""
    return Document(
        title="Reconciliation report",
        period=f"{first} – {last}" if first or last else "All statements",
        currency=report.currency,
        columns=(
            Column("status", "Status", 5),
            Column("count", "Lines", 2, is_amount=True),
            Column("received", "Received", 3, is_amount=True),
            Column("paid", "Paid", 3, is_amount=True),
            Column("amount", "Sum", 3, is_amount=True),
        ),
        rows=rows,
        bold_rows=(0,),
        file_name="-".join(["reconciliation", *filter(None, (first, last))]),
    )
