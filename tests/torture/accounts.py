"""The accounts behind the names of the plan, and whether everybody has what the clients say."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

import asyncpg

from tapgate import ids
from tapgate.store.database import Database
from torture import plan
from torture.client_ledger import CASH, COMMISSION_EXPENSE, FEES, ClientLedger, commission_account
from torture.findings import Findings
from torture.participants import Participants

#: transaction -> whose balance -> by how much
BalanceChanges = Mapping[int, Mapping[str, int]]

#: By the prefix of its holder's identifier, the kind of an account.
_ACCOUNT_KINDS: Final = {
    "sub_": "wallet",
    "agt_": "float",
    "prc_": "settlement",
    "ptn_": "clearing",
}


async def map_account_names(
    database: Database, town: Participants, findings: Findings
) -> dict[int, str]:
    holders: dict[tuple[str, int | None], str] = {
        (_ACCOUNT_KINDS[public[:4]], ids.decode(public[:4], public)): name
        for name, public in town.ids.items()
    }
    for agent in plan.AGENTS:
        holders["commission", ids.decode(ids.AGENT, town.ids[agent])] = commission_account(agent)
    holders |= {(kind, None): kind for kind in (FEES, COMMISSION_EXPENSE, CASH)}
    names = {}
    for row in await database.fetch("SELECT id, kind, owner_id FROM accounts"):
        name = holders.pop((row["kind"], row["owner_id"]), None)
        if name is None:
            findings.add("unasked", f"account {row['id']}", "nobody opened it")
        else:
            names[row["id"]] = name
    for name in holders.values():
        findings.add("lost", name, "has no account")
    return names


async def load_balance_changes(
    database: Database, transaction: int, names: Mapping[int, str]
) -> dict[int, dict[str, int]]:
    """By the entries: how much each transaction after that one changed whose balance."""
    rows = await database.fetch(
        """SELECT transaction_id, account, sum(amount)::bigint AS amount FROM (
               SELECT transaction_id, debit_account AS account, -amount AS amount FROM entries
               WHERE transaction_id > $1
               UNION ALL SELECT transaction_id, credit_account, amount FROM entries
               WHERE transaction_id > $1) AS sides
           GROUP BY transaction_id, account""",
        transaction,
    )
    moved: dict[int, dict[str, int]] = defaultdict(dict)
    for row in rows:
        if row["amount"]:
            name = names.get(row["account"], f"account {row['account']}")
            moved[row["transaction_id"]][name] = row["amount"]
    return moved


async def reconcile_balances(
    database: Database, book: ClientLedger, names: Mapping[int, str], findings: Findings
) -> None:
    """Of everybody and of the platform, in the tables; nothing is held, all is worth zero."""
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
        known = book.balances[name]
        if balance != known or row["entries"] != known:
            what = f"has {balance} (entries {row['entries']}), the clients say {known}"
            findings.add("balance", name, what)
        if row["checked"] and balance < 0:
            findings.add("balance", name, f"is below zero: {balance}")
        if row["held"]:
            findings.add("balance", name, f"{row['held']} are held, for nothing")
    if total:
        findings.add("balance", "all accounts", f"sum up to {total}")


def reconcile_running_balances(
    rows: Iterable[asyncpg.Record],
    moved: BalanceChanges,
    names: Mapping[int, str],
    begun: Mapping[str, int],
    ended: Mapping[str, int],
    findings: Findings,
) -> None:
    """Every balance that a transaction left behind is what the next one began with: together they
    lead from what somebody had to what they have, and no two saw the same money."""
    befores: dict[str, Counter[int]] = defaultdict(Counter)
    afters: dict[str, Counter[int]] = defaultdict(Counter)
    for row in rows:
        for side in ("from", "to"):
            name, left = names.get(row[f"{side}_account"], ""), row[f"{side}_balance"]
            change = moved.get(row["id"], {}).get(name)
            if left is not None and change is not None:
                afters[name][left] += 1
                befores[name][left - change] += 1
    for name, after in afters.items():
        before = befores[name]
        after[begun.get(name, 0)] += 1
        before[ended[name]] += 1
        if after != before:
            gaps = (after - before) + (before - after)
            findings.add("balance", name, f"its steps do not join at {sorted(gaps)[:6]}")
