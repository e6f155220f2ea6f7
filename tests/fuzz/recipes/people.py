"""Before subscribers and their cards can be asked for."""

import httpx2

from fuzz.callers import Caller
from fuzz.recipes.recipe import V1, Ready, recipe
from fuzz.values import ABSENT, Company
from journeys.caller import done, new_phone
from tapgate.subscribers.kyc_documents.model import ImageRule
from world import PIN

#: What one subscriber can be asked for only once, or a few times.
_ONCE = ("block", "close", "change-pin", "reset-pin", "kyc-documents")


@recipe(f"POST {V1}/subscribers")
async def new_subscriber(here: Company, _: Caller) -> Ready:
    return Ready(body={"phone_number": new_phone(), "pin": PIN})


@recipe(f"PUT {V1}/subscribers/{{id}}")
async def changed_subscriber(here: Company, _: Caller) -> Ready:
    person = await here.stock.app.register()
    decided = ("kyc_level", "kyc_status", "restricted")
    return Ready({"id": person.id}, {"phone_number": new_phone(), **dict.fromkeys(decided, ABSENT)})


@recipe(*(f"POST {V1}/subscribers/{{id}}/{verb}" for verb in _ONCE))
async def spare_person(here: Company, _: Caller) -> Ready:
    return Ready({"id": (await here.stock.app.register()).id})


@recipe(f"POST {V1}/subscribers/{{id}}/unblock")
async def blocked_person(here: Company, _: Caller) -> Ready:
    person = await here.stock.app.register()
    done(await here.stock.ada.post(f"subscribers/{person.id}/block", reason="fuzzing"))
    return Ready({"id": person.id})


@recipe(f"POST {V1}/subscribers/{{id}}/reset-pin/confirm")
async def forgotten_pin(here: Company, _: Caller) -> Ready:
    person = await here.stock.app.register()
    done(await here.stock.ada.post(f"subscribers/{person.id}/reset-pin"))
    return Ready({"id": person.id}, {"otp": await here.stock.code_sent_to(person)})


@recipe(f"POST {V1}/subscribers/{{id}}/restricted-access")
async def restricted(here: Company, _: Caller) -> Ready:
    person = await here.stock.app.register()
    done(await here.stock.ada.put(f"subscribers/{person.id}", restricted=True))
    return Ready({"id": person.id})


@recipe(f"POST {V1}/subscribers/{{id}}/restricted-access/verify")
async def asked_for_access(here: Company, caller: Caller) -> Ready:
    person = await here.stock.app.register()
    ready = Ready({"id": person.id})
    done(await here.stock.ada.put(f"subscribers/{person.id}", restricted=True))
    asked = await here.stock.ada.client.post(
        f"{V1}/subscribers/{person.id}/restricted-access", auth=caller.auth or httpx2.Auth()
    )
    if not asked.is_success:
        return ready
    ready.body["otp"] = await here.stock.code_sent_to(person)
    return ready


@recipe(f"GET {V1}/subscribers/{{id}}/kyc-documents/{{document_id}}")
async def document(here: Company, _: Caller) -> Ready:
    person = await here.stock.app.register()
    picture = {"document_type": "selfie", "image": ImageRule.example}
    added = await here.stock.app.post(f"subscribers/{person.id}/kyc-documents", **picture)
    return Ready({"id": person.id, "document_id": done(added)["document_id"]})


@recipe(f"POST {V1}/cards/link")
async def to_link(here: Company, _: Caller) -> Ready:
    person = await here.stock.app.register()
    return Ready(body={"subscriber_id": person.id, "card_serial": await here.stock.card()})


@recipe(f"POST {V1}/cards/child")
async def parent(here: Company, _: Caller) -> Ready:
    person = await here.stock.person()
    return Ready(body={"parent_subscriber_id": person.id, "card_serial": await here.stock.card()})


@recipe(f"POST {V1}/cards/{{serial}}/block")
async def linked_card(here: Company, _: Caller) -> Ready:
    person, serial = await here.stock.app.register(), await here.stock.card()
    await here.stock.app.link(serial, person)
    return Ready({"serial": serial})


@recipe(f"POST {V1}/cards/{{serial}}/unblock")
async def blocked_card(here: Company, caller: Caller) -> Ready:
    ready = await linked_card(here, caller)
    done(await here.stock.ada.post(f"cards/{ready.path['serial']}/block", reason="fraud"))
    return ready


@recipe(f"POST {V1}/cards/upload-csv")
async def card_file(here: Company, _: Caller) -> Ready:
    number = here.stock.number()
    rows = f"Serial No.,MAC Address\r\nUP-{number},\r\nUP-{number}-2,nonsense\r\n"
    body = (
        '--edge\r\nContent-Disposition: form-data; name="file"; filename="cards.csv"\r\n'
        f"Content-Type: text/csv\r\n\r\n{rows}\r\n--edge--\r\n"
    )
    return Ready(content=(body.encode(), "multipart/form-data; boundary=edge"))
