"""Stored data about people: language, trust, verified phone and recipients."""

import msgspec

from builders.auth import FakeClock
from tapgate.messenger import people
from tapgate.messenger.model import Person, Recipient
from tapgate.store.database import Database

PHONE = "+23276000001"
MARY = Recipient(name="Mary K.", card_serial="CARD-1")
JOHN = Recipient(name="John S.", card_serial="CARD-2")


async def reload_person(database: Database, address: str, **fields: object) -> Person:
    """Save changed fields of a person and load the person again."""
    before = await people.load_person(database, address)
    async with database.transaction() as tx:
        after = msgspec.structs.replace(before, **fields)
        await people.save_person(tx, before, after, FakeClock()())
    return await people.load_person(database, address)


async def test_unknown_person_is_derived_from_the_address_and_not_stored(
    database: Database,
) -> None:
    assert await people.load_person(database, PHONE) == Person(address=PHONE, phone=PHONE)
    assert await people.load_person(database, "user:ada") == Person(address="user:ada", phone=None)
    assert await database.fetchval("SELECT count(*) FROM messenger.people") == 0


async def test_language_and_trust_are_stored(database: Database) -> None:
    person = await reload_person(database, PHONE, language="fr", trusted=False)
    assert (person.language, person.trusted) == ("fr", False)
    person = await reload_person(database, PHONE, trusted=True)
    assert (person.language, person.trusted) == ("fr", True)


async def test_verified_phone_belongs_only_to_the_person_who_verified_it(
    database: Database,
) -> None:
    person = await reload_person(database, "user:ada", phone=PHONE)
    assert person.phone == PHONE
    assert (await people.load_person(database, "user:eve")).phone is None


async def test_recipients_are_saved_renamed_and_removed(database: Database) -> None:
    renamed = Recipient(name="Mary L.", card_serial=MARY.card_serial)
    await reload_person(database, PHONE, recipients=(MARY, JOHN))
    person = await reload_person(database, PHONE, recipients=(JOHN, renamed))
    assert person.recipients == (JOHN, renamed)
    person = await reload_person(database, PHONE, recipients=(renamed,))
    assert person.recipients == (renamed,)
    assert (await people.load_person(database, "+23276000002")).recipients == ()
