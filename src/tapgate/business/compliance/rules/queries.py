"""SQL queries for compliance rules."""

from typing import Final

from tapgate.business.compliance.rules.model import UPDATABLE_FIELDS
from tapgate.ledger.rules.compliance import ComplianceRule
from tapgate.ledger.rules.loaded_rules import COMPLIANCE_RULE_COLUMNS
from tapgate.runtime.store.conditions import PageConditions
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.rows import insert_row, update_row
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import Code, require_found
from tapgate_client.schemas.pagination import PageQuery

_SELECT: Final = f"SELECT {COMPLIANCE_RULE_COLUMNS} FROM compliance_rules"


async def list_page(database: Database, query: PageQuery) -> list[ComplianceRule]:
    rows = await PageConditions(query).fetch(database, _SELECT)
    return [ComplianceRule(**row) for row in rows]


async def get(
    reader: Database | Transaction, rule_id: int, *, for_update: bool = False
) -> ComplianceRule:
    lock = "FOR NO KEY UPDATE" if for_update else ""
    row = await reader.fetchrow(f"{_SELECT} WHERE id = $1 {lock}", rule_id)
    return ComplianceRule(**require_found(row, Code.RULE_NOT_FOUND))


async def lock_and_count(tx: Transaction) -> int:
    """Lock the table and return the number of rules, which no other transaction can then change."""
    await tx.execute("LOCK TABLE compliance_rules IN SHARE ROW EXCLUSIVE MODE")
    count: int = await tx.fetchval("SELECT count(*) FROM compliance_rules")
    return count


async def insert(tx: Transaction, rule: ComplianceRule) -> None:
    await insert_row(tx, "compliance_rules", rule, rule.__struct_fields__)


async def delete(tx: Transaction, rule_id: int) -> None:
    await tx.execute("DELETE FROM compliance_rules WHERE id = $1", rule_id)


async def save(tx: Transaction, rule: ComplianceRule) -> None:
    await update_row(tx, "compliance_rules", rule, UPDATABLE_FIELDS)
