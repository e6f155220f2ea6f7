"""SQL queries for the tables of fee rules and commission rules."""

from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from tapgate.ledger.rules.commission import CommissionRate
from tapgate.ledger.rules.fees import FeeTier
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction

RowT = TypeVar("RowT", bound=msgspec.Struct)


class RuleTable(NamedTuple, Generic[RowT]):
    """Table whose columns are the fields of `row_type`, and whose rows are replaced together."""

    name: str
    row_type: type[RowT]
    order_by: str

    async def list_rows(self, reader: Database | Transaction) -> list[RowT]:
        columns = ", ".join(self.row_type.__struct_fields__)
        rows = await reader.fetch(f"SELECT {columns} FROM {self.name} ORDER BY {self.order_by}")
        return [self.row_type(**row) for row in rows]

    async def lock(self, tx: Transaction) -> None:
        """Lock the table against concurrent replacements, but not against reads."""
        await tx.execute(f"LOCK TABLE {self.name} IN SHARE ROW EXCLUSIVE MODE")

    async def replace_rows(self, tx: Transaction, rows: list[RowT]) -> None:
        columns = self.row_type.__struct_fields__
        values = ", ".join(f"${number}" for number, _ in enumerate(columns, start=1))
        await tx.execute(f"DELETE FROM {self.name}")
        await tx.executemany(
            f"INSERT INTO {self.name} ({', '.join(columns)}) VALUES ({values})",
            [tuple(getattr(row, column) for column in columns) for row in rows],
        )


FEE_RULES: Final = RuleTable("fee_rules", FeeTier, "type, up_to NULLS LAST")
COMMISSION_RULES: Final = RuleTable("commission_rules", CommissionRate, "type, tier")
