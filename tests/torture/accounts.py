"""Account names in the plan, and balance reconciliation with the clients' records."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

import asyncpg

from tapgate.ledger import chart
from tapgate.runtime.store.database import Database
from tapgate_client import ids
from torture import plan
from torture.client_ledger import ClientLedger, get_commission_account
from torture.findings import Findings
from torture.participants import Participants

#: Transaction id -> account name -> balance change.
BalanceChanges = Mapping[int, Mapping[str, int]]

#: Account kind by its holder's id prefix.
_ACCOUNT_KINDS: Final = {
    "sub_": "wallet",
    "agt_": "float",
    "prc_": "settlement",
    "ptn_": "clearing",
}


async def map_account_names(
    database: Database, participants: Participants, findings: Findings
) -> dict[int, str]:
    holders: dict[tuple[str, int | None], str] = {
        (_ACCOUNT_KINDS[public[:4]], ids.decode(public[:4], public)): name
        for name, public in participants.ids.items()
    }
    for agent in plan.AGENTS:
        holders["commission", ids.decode(ids.AGENT, participants.ids[agent])] = (
            get_commission_account(agent)
        )
    holders |= {(kind, None): kind for kind in chart.PLATFORM_ACCOUNT_KINDS}
    names = {}
    for row in await database.fetch("SELECT id, kind, owner_id FROM accounts"):
        name = holders.pop((row["kind"], row["owner_id"]), None)
        if name is None:
            findings.add("unexpected", f"account {row['id']}", "no client opened it")
        else:
            names[row["id"]] = name
    for name in holders.values():
        findings.add("lost", name, "has no account")
    return names


async def load_balance_changes(
    database: Database, transaction: int, names: Mapping[int, str]
) -> dict[int, dict[str, int]]:
    """Return the balance changes of each transaction after the given one, from its entries."""
    rows = await database.fetch(
        """SELECT transaction_id, account, sum(amount)::bigint AS amount FROM (
               SELECT transaction_id, debit_account AS account, -amount AS amount FROM entries
               WHERE transaction_id > $1
               UNION ALL SELECT transaction_id, credit_account, amount FROM entries
               WHERE transaction_id > $1) AS sides
           GROUP BY transaction_id, account""",
        transaction,
    )
    changes: dict[int, dict[str, int]] = defaultdict(dict)
    for row in rows:
        if row["amount"]:
            name = names.get(row["account"], f"account {row['account']}")
            changes[row["transaction_id"]][name] = row["amount"]
    return changes


async def reconcile_balances(
    database: Database, client_ledger: ClientLedger, names: Mapping[int, str], findings: Findings
) -> None:
    """Report differing or negative balances, held funds, and accounts that do not sum to zero."""
    rows = await database.fetch(
        """WITH sums AS (
               SELECT account_id, sum(amount)::bigint AS amount FROM (
                   SELECT debit_account AS account_id, -amount AS amount FROM entries
                   UNION ALL SELECT credit_account, amount FROM entries) AS sides
               GROUP BY account_id)
           SELECT id, checked, held, balance, coalesce(amount, 0) AS entries
           FROM accounts LEFT JOIN sums ON account_id = id"""
    )
    total = 0
    for row in rows:
        name = names.get(row["id"], f"account {row['id']}")
        balance = row["balance"] if row["checked"] else row["entries"]
        total += balance
        expected = client_ledger.balances[name]
        if balance != expected or row["entries"] != expected:
            detail = f"has {balance} (entries {row['entries']}), expected {expected}"
            findings.add("balance", name, detail)
        if row["checked"] and balance < 0:
            findings.add("balance", name, f"is negative: {balance}")
        if row["held"]:
            findings.add("balance", name, f"holds {row['held']} without a reason")
    if total:
        findings.add("balance", "all accounts", f"sum to {total}")


def reconcile_running_balances(
    rows: Iterable[asyncpg.Record],
    changes: BalanceChanges,
    names: Mapping[int, str],
    opening_balances: Mapping[str, int],
    closing_balances: Mapping[str, int],
    findings: Findings,
) -> None:
    """Report accounts whose recorded balances do not form an unbroken sequence.

    Each balance after a transaction must be the balance before another one, from the opening to the
    closing balance. Two transactions that started from the same balance would leave a gap.
    """
    befores: dict[str, Counter[int]] = defaultdict(Counter)
    afters: dict[str, Counter[int]] = defaultdict(Counter)
    for row in rows:
        for side in ("from", "to"):
            name, balance = names.get(row[f"{side}_account"], ""), row[f"{side}_balance"]
            change = changes.get(row["id"], {}).get(name)
            if balance is not None and change is not None:
                afters[name][balance] += 1
                befores[name][balance - change] += 1
    for name, after in afters.items():
        before = befores[name]
        after[opening_balances.get(name, 0)] += 1
        before[closing_balances[name]] += 1
        if after != before:
            gaps = (after - before) + (before - after)
            findings.add("balance", name, f"running balances have gaps at {sorted(gaps)[:6]}")
