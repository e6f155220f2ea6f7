"""Stored data about people: language, trust, verified phone and recipients."""

from builders.clock import FakeClock
from tapgate.messenger import people
from tapgate.messenger.model.people import (
    Effect,
    Person,
    Recipient,
    RemoveRecipient,
    SaveRecipient,
    SetLanguage,
    SetTrusted,
    SetVerifiedPhone,
)
from tapgate.messenger.people import MAX_RECIPIENTS
from tapgate.store.database import Database

PHONE = "+23276000001"
MARY = Recipient(name="Mary K.", card_serial="CARD-1")
JOHN = Recipient(name="John S.", card_serial="CARD-2")


async def reload_person(database: Database, address: str, *effects: Effect) -> Person:
    before = person = await people.load_person(database, address)
    for effect in effects:
        person = people.apply_effect(person, effect)
    async with database.transaction() as tx:
        await people.save_person(tx, before, person, FakeClock()())
    return await people.load_person(database, address)


async def test_unknown_person_is_derived_from_the_address_and_not_stored(
    database: Database,
) -> None:
    assert await people.load_person(database, PHONE) == Person(address=PHONE, phone=PHONE)
    assert await people.load_person(database, "user:ada") == Person(address="user:ada", phone=None)
    assert await database.fetchval("SELECT count(*) FROM messenger.people") == 0


async def test_language_and_trust_are_stored(database: Database) -> None:
    person = await reload_person(
        database, PHONE, SetLanguage(language="fr"), SetTrusted(trusted=False)
    )
    assert (person.language, person.trusted) == ("fr", False)
    person = await reload_person(database, PHONE, SetTrusted(trusted=True))
    assert (person.language, person.trusted) == ("fr", True)


async def test_verified_phone_belongs_only_to_the_person_who_verified_it(
    database: Database,
) -> None:
    person = await reload_person(database, "user:ada", SetVerifiedPhone(phone=PHONE))
    assert person.phone == PHONE
    assert (await people.load_person(database, "user:eve")).phone is None


async def test_recipients_are_saved_once_and_can_be_removed(database: Database) -> None:
    renamed = Recipient(name="Mary L.", card_serial=MARY.card_serial)
    person = await reload_person(
        database,
        PHONE,
        SaveRecipient(recipient=MARY),
        SaveRecipient(recipient=JOHN),
        SaveRecipient(recipient=renamed),
    )
    assert person.recipients == (JOHN, renamed)
    person = await reload_person(database, PHONE, RemoveRecipient(card_serial=JOHN.card_serial))
    assert person.recipients == (renamed,)
    assert (await people.load_person(database, "+23276000002")).recipients == ()


async def test_saving_above_the_limit_removes_the_oldest_recipients(database: Database) -> None:
    many = [
        SaveRecipient(recipient=Recipient(name=f"N{number:02d} K.", card_serial=f"C-{number}"))
        for number in range(MAX_RECIPIENTS + 2)
    ]
    person = await reload_person(database, PHONE, *many)
    assert [item.card_serial for item in person.recipients] == [
        f"C-{number}" for number in range(2, MAX_RECIPIENTS + 2)
    ]
