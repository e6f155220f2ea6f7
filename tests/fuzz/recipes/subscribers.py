"""Prerequisites for operations on subscribers and their cards."""

import httpx2

from drivers.actors import Customer, new_phone_number, require_success
from fuzz.callers import Caller
from fuzz.recipes.kinds import create_keyset
from fuzz.recipes.recipe import V1, Prerequisites, register_recipe
from fuzz.values import ABSENT, RequestSubjects
from harness import PIN
from tapgate_client.schemas.subscribers import ImageRule
from tapgate_sandbox.software_card import SoftwareCard

#: Actions that one subscriber allows only once or a few times.
_SINGLE_USE_ACTIONS = ("block", "close", "change-pin", "reset-pin", "kyc-documents")


@register_recipe(f"POST {V1}/subscribers")
async def prepare_registration(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(body={"phone_number": new_phone_number(), "pin": PIN})


@register_recipe(f"PUT {V1}/subscribers/{{id}}")
async def prepare_update(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    customer = await subjects.fixtures.app.register_customer()
    protected_fields = ("kyc_level", "kyc_status", "restricted")
    return Prerequisites(
        {"id": customer.id},
        {"phone_number": new_phone_number(), **dict.fromkeys(protected_fields, ABSENT)},
    )


@register_recipe(*(f"POST {V1}/subscribers/{{id}}/{verb}" for verb in _SINGLE_USE_ACTIONS))
async def prepare_subscriber(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites({"id": (await subjects.fixtures.app.register_customer()).id})


@register_recipe(f"POST {V1}/subscribers/{{id}}/unblock")
async def prepare_blocked_subscriber(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    customer = await subjects.fixtures.app.register_customer()
    require_success(
        await subjects.fixtures.admin.post(f"subscribers/{customer.id}/block", reason="fuzzing")
    )
    return Prerequisites({"id": customer.id})


@register_recipe(f"POST {V1}/subscribers/{{id}}/reset-pin/confirm")
async def prepare_pin_reset(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    customer = await subjects.fixtures.app.register_customer()
    require_success(await subjects.fixtures.admin.post(f"subscribers/{customer.id}/reset-pin"))
    return Prerequisites(
        {"id": customer.id}, {"otp": await subjects.fixtures.wait_for_code(customer.phone)}
    )


@register_recipe(f"POST {V1}/subscribers/{{id}}/restricted-access")
async def prepare_restricted_subscriber(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    customer = await subjects.fixtures.app.register_customer()
    require_success(
        await subjects.fixtures.admin.put(f"subscribers/{customer.id}", restricted=True)
    )
    return Prerequisites({"id": customer.id})


@register_recipe(f"POST {V1}/subscribers/{{id}}/restricted-access/verify")
async def prepare_access_code(subjects: RequestSubjects, caller: Caller) -> Prerequisites:
    customer = await subjects.fixtures.app.register_customer()
    prerequisites = Prerequisites({"id": customer.id})
    require_success(
        await subjects.fixtures.admin.put(f"subscribers/{customer.id}", restricted=True)
    )
    response = await subjects.fixtures.admin.client.post(
        f"{V1}/subscribers/{customer.id}/restricted-access", auth=caller.auth or httpx2.Auth()
    )
    if not response.is_success:
        return prerequisites
    prerequisites.body["otp"] = await subjects.fixtures.wait_for_code(customer.phone)
    return prerequisites


@register_recipe(f"GET {V1}/subscribers/{{id}}/kyc-documents/{{document_id}}")
async def prepare_kyc_document(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    customer = await subjects.fixtures.app.register_customer()
    document = {"document_type": "selfie", "image": ImageRule.example}
    response = await subjects.fixtures.app.post(
        f"subscribers/{customer.id}/kyc-documents", **document
    )
    return Prerequisites(
        {"id": customer.id, "document_id": require_success(response)["document_id"]}
    )


@register_recipe(
    *(f"POST {V1}/subscribers/{{id}}/kyc-review/{verb}" for verb in ("assign", "unassign"))
)
async def prepare_kyc_review(subjects: RequestSubjects, caller: Caller) -> Prerequisites:
    """Prepare a subscriber whose document waits for a review by the caller."""
    subscriber = (await prepare_kyc_document(subjects, caller)).path["id"]
    path = f"{V1}/subscribers/{subscriber}/kyc-review/assign"
    client = subjects.fixtures.admin.client
    await client.post(path, auth=caller.auth or httpx2.Auth())
    return Prerequisites({"id": subscriber})


@register_recipe(f"POST {V1}/subscribers/{{id}}/dispute-phone-change")
async def prepare_changed_number(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    customer = await subjects.fixtures.app.register_customer()
    changed = await subjects.fixtures.admin.put(
        f"subscribers/{customer.id}", phone_number=new_phone_number()
    )
    require_success(changed)
    return Prerequisites({"id": customer.id}, {"phone_number": customer.phone})


@register_recipe(f"POST {V1}/subscribers/{{id}}/kyc-decision")
async def prepare_kyc_decision(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    customer = await subjects.fixtures.app.register_customer()
    return Prerequisites(
        {"id": customer.id}, {"decision": "reject", "kyc_level": ABSENT, "reason": "unreadable"}
    )


@register_recipe(f"POST {V1}/cards/link")
async def prepare_unlinked_card(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    customer = await subjects.fixtures.app.register_customer()
    return Prerequisites(
        body={"subscriber_id": customer.id, "card_serial": await subjects.fixtures.take_card()}
    )


@register_recipe(f"POST {V1}/cards/child")
async def prepare_parent_card(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    customer = await subjects.fixtures.create_customer()
    return Prerequisites(
        body={
            "parent_subscriber_id": customer.id,
            "card_serial": await subjects.fixtures.take_card(),
        }
    )


@register_recipe(
    f"PUT {V1}/cards/{{serial}}",
    *(f"POST {V1}/cards/{{serial}}/{verb}" for verb in ("change-pin", "reset-pin")),
)
async def prepare_child_card(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(
        {"serial": await _create_child_card(subjects, await subjects.fixtures.create_customer())}
    )


@register_recipe(f"POST {V1}/cards/{{serial}}/reset-pin/confirm")
async def prepare_card_pin_reset(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    parent = await subjects.fixtures.create_customer()
    serial = await _create_child_card(subjects, parent)
    require_success(await subjects.fixtures.admin.post(f"cards/{serial}/reset-pin"))
    return Prerequisites(
        {"serial": serial}, {"otp": await subjects.fixtures.wait_for_code(parent.phone)}
    )


async def _create_child_card(subjects: RequestSubjects, parent: Customer) -> str:
    """Create a child card whose PIN is `PIN` and return its serial."""
    serial = await subjects.fixtures.take_card()
    body = {"parent_pin": PIN, "child_pin": PIN, "daily_limit": "50", "child_name": "Sia"}
    require_success(
        await subjects.fixtures.admin.post(
            "cards/child", parent_subscriber_id=parent.id, card_serial=serial, **body
        )
    )
    return serial


@register_recipe(f"POST {V1}/cards/{{serial}}/block")
async def prepare_linked_card(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    customer, serial = (
        await subjects.fixtures.app.register_customer(),
        await subjects.fixtures.take_card(),
    )
    await subjects.fixtures.app.link_card(serial, customer)
    return Prerequisites({"serial": serial})


@register_recipe(f"POST {V1}/cards/{{serial}}/unblock")
async def prepare_blocked_card(subjects: RequestSubjects, caller: Caller) -> Prerequisites:
    prerequisites = await prepare_linked_card(subjects, caller)
    require_success(
        await subjects.fixtures.admin.post(
            f"cards/{prerequisites.path['serial']}/block", reason="fraud"
        )
    )
    return prerequisites


@register_recipe(f"POST {V1}/cards/upload-csv")
async def prepare_card_file(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    number = subjects.fixtures.next_number()
    rows = f"Serial No.,MAC Address\r\nUP-{number},\r\nUP-{number}-2,nonsense\r\n"
    body = (
        '--edge\r\nContent-Disposition: form-data; name="file"; filename="cards.csv"\r\n'
        f"Content-Type: text/csv\r\n\r\n{rows}\r\n--edge--\r\n"
    )
    return Prerequisites(content=(body.encode(), "multipart/form-data; boundary=edge"))


@register_recipe(f"POST {V1}/cards/{{serial}}/replace/confirm")
async def prepare_replaced_card(subjects: RequestSubjects, caller: Caller) -> Prerequisites:
    """Let the caller, who alone can use the code, replace a card."""
    fixtures = subjects.fixtures
    customer = await fixtures.create_customer()
    path, body = f"{V1}/cards/{customer.card}/replace", {"reason": "lost"}
    response = await fixtures.admin.client.post(path, json=body, auth=caller.auth or httpx2.Auth())
    if not response.is_success:
        return Prerequisites({"serial": customer.card})
    code = await fixtures.wait_for_code(customer.phone)
    return Prerequisites(
        {"serial": customer.card}, {"card_serial": await fixtures.take_card(), "otp": code}
    )


@register_recipe(f"POST {V1}/cards/{{serial}}/personalize")
async def prepare_blank_card(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(
        {"serial": await subjects.fixtures.take_card()},
        {"keyset_id": await create_keyset(subjects, {})},
    )


@register_recipe(f"POST {V1}/cards/{{serial}}/personalize/confirm")
async def prepare_issued_card(subjects: RequestSubjects, caller: Caller) -> Prerequisites:
    blank = await prepare_blank_card(subjects, caller)
    path = f"cards/{blank.path['serial']}/personalize"
    issued = require_success(await subjects.fixtures.admin.post(path, **blank.body))
    uid, meta_read_key, file_read_key = (
        bytes.fromhex(key) for key in (issued["uid"], issued["keys"]["k2"], issued["keys"]["k1"])
    )
    proof = SoftwareCard(uid, meta_read_key, file_read_key).tap()
    card_proof = {"picc_data": proof.picc_data, "cmac": proof.cmac}
    return Prerequisites(blank.path, {"card_proof": card_proof})


@register_recipe(f"POST {V1}/cards/keysets/{{id}}/retire")
async def prepare_unused_keyset(_subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(body={"cards": 0})
