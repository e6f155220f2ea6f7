"""Whom a batch's movements concern enough to be told on the phone: one statement, in the batch's
own transaction.

Only who is to be told of which transaction is written here; the words are found when the message is
made. A batch that concerns nobody costs nothing.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple

from tapgate.ledger import chart
from tapgate.ledger.state import Account, Decision, NewTransaction, Recorded, State

MONEY_RECEIVED: Final = "money_received"
PAYMENT_MADE: Final = "payment_made"

_TELL_PAYEE: Final = chart.RECEIVED_TYPES | {chart.TRANSFER_P2P, chart.TRANSFER, chart.REFUND}
_TELL_PAYER: Final = chart.COUNTED_TYPES
#: Who asks by messaging reads the answer in the same chat.
_ANSWERED_IN_CHAT: Final = "messaging"


class Notice(NamedTuple):
    transaction_id: int
    kind: str
    subscriber_id: int


async def give_notice(tx: Any, state: State, decisions: Sequence[Decision]) -> None:
    wanted = state.rules.notices
    if not wanted:
        return
    notices = [notice for decision in decisions for notice in _notices(state, decision, wanted)]
    if notices:
        await tx.execute(
            """INSERT INTO notices (transaction_id, kind, subscriber_id)
               SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[])""",
            *map(list, zip(*notices, strict=True)),
        )


def _notices(state: State, decision: Decision, wanted: Collection[str]) -> Iterator[Notice]:
    row = _completed(state, decision)
    if row is None or row.from_account is None or row.to_account is None:
        return
    payer, payee = state.accounts[row.from_account], state.accounts[row.to_account]
    if (
        MONEY_RECEIVED in wanted
        and row.type in _TELL_PAYEE
        and (row.type != chart.TRANSFER or payer.kind == chart.WALLET)
    ):
        yield from _to(payee, row.id, MONEY_RECEIVED)
    if PAYMENT_MADE in wanted and row.type in _TELL_PAYER and not _was_answered_in_chat(row):
        yield from _to(payer, row.id, PAYMENT_MADE)


def _completed(state: State, decision: Decision) -> NewTransaction | Recorded | None:
    """What completed by this decision: at once, or by the release of what was held."""
    made, change = decision.transaction, decision.change
    if made is not None:
        return made if made.status == "completed" else None
    if change is not None and change.completes:
        return state.recorded[change.transaction_id]
    return None


def _was_answered_in_chat(row: NewTransaction | Recorded) -> bool:
    """Of what was held the chat has only said that it is."""
    return isinstance(row, NewTransaction) and row.channel == _ANSWERED_IN_CHAT


def _to(account: Account, transaction_id: int, kind: str) -> Iterator[Notice]:
    if account.kind == chart.WALLET and account.owner_id is not None:
        yield Notice(transaction_id, kind, account.owner_id)
