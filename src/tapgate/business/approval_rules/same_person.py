"""Whether different admins or API keys may be one person, for checks that need a second person."""

from collections.abc import Iterable

from tapgate.business.approval_rules.queries import find_admin, load_linked_people
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids


async def may_be_same_person(
    reader: Database | Transaction, actors: Iterable[str], others: Iterable[str]
) -> bool:
    """Return whether one person may act as one of the actors and as one of the others.

    Actors are public IDs of admins and API keys. Two accounts may be one person if their email
    addresses are the same person's, or if someone has had an unconfirmed link to the other account.
    Everyone who created or rotated an API key has had its secret.
    """
    actors, others = {*actors}, {*others}
    if not actors.isdisjoint(others):
        return True
    people = [await _list_people(reader, actor) for actor in actors]
    other_people = [await _list_people(reader, other) for other in others]
    linked = await load_linked_people(reader)
    return any(
        linked.may_be_same(person, other)
        for person in set().union(*people)
        for other in set().union(*other_people)
    )


async def _list_people(reader: Database | Transaction, actor: str) -> set[str]:
    admin_ids = [ids.decode(ids.ADMIN, actor)]
    key_id = ids.decode(ids.KEY, actor)
    if key_id is not None:
        holders = await reader.fetchrow(
            "SELECT created_by, rotated_by FROM api_keys WHERE id = $1", key_id
        )
        admin_ids = [] if holders is None else [holders["created_by"], *holders["rotated_by"]]
    return {
        (await find_admin(reader, admin_id)).person
        for admin_id in admin_ids
        if admin_id is not None
    }
