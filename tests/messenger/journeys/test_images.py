"""KYC images sent to the compatibility endpoint, and the limits on their number."""

import pytest

from builders.chat_images import JPEG, PNG, build_media, list_documents
from drivers.messenger import MessengerDriver, ServicesDriver


@pytest.mark.parametrize(("content", "kind"), [(JPEG, "image/jpeg"), (PNG, "image/png")])
async def test_jpeg_and_png_are_forwarded_as_kyc_documents(
    services_driver: ServicesDriver, messenger: MessengerDriver, content: bytes, kind: str
) -> None:
    subscriber = await services_driver.harness.create_subscriber()
    phone = messenger.create_phone(subscriber["phone_number"])
    await phone.send_by_bridge("kyc")
    await phone.send_by_bridge("1")
    response = await phone.post_to_bridge(
        messageType="image", hasMedia=True, media=build_media(content, kind)
    )
    assert response.json()["status"] == "success", response.text
    (document,) = await list_documents(services_driver, subscriber["id"])
    assert document["document_type"] == "id_front"


async def test_image_before_its_type_is_kept_sealed_and_uploaded(
    services_driver: ServicesDriver, messenger: MessengerDriver
) -> None:
    subscriber = await services_driver.harness.create_subscriber()
    phone = messenger.create_phone(subscriber["phone_number"])
    database = services_driver.harness.services.database
    sent = {"messageType": "image", "hasMedia": True, "media": build_media(PNG, "image/png")}
    await phone.send_by_bridge("send money")
    assert "keep your photo" in (await phone.post_to_bridge(**sent)).json()["answer"]
    await phone.post_to_bridge(**sent)  # kept once
    assert await database.fetchval("SELECT count(*) FROM messenger.images") == 1
    sealed = await database.fetchval("SELECT sealed FROM messenger.images")
    assert PNG[:16] not in sealed
    assert "Verify identity" in await phone.send_by_bridge("cancel")
    assert "What does it show" in await phone.send_by_bridge("kyc")
    assert "level 1" in await phone.send_by_bridge("limits")
    await phone.send_by_bridge("kyc")
    await phone.send_by_bridge("selfie")
    assert "tell you the result here" in await phone.send_by_bridge("that's all")
    (document,) = await list_documents(services_driver, subscriber["id"])
    assert document["document_type"] == "selfie"
    assert await database.fetchval("SELECT count(*) FROM messenger.images") == 0
    await phone.post_to_bridge(**sent)
    assert await database.fetchval("SELECT count(*) FROM messenger.images") == 1
    assert "deleted that photo" in await phone.send_by_bridge("cancel")
    assert await database.fetchval("SELECT count(*) FROM messenger.images") == 0
    for document_type in ("id_front", "id_back"):
        different = {**sent, "media": build_media(JPEG, "image/jpeg")}
        await phone.post_to_bridge(**different)
        await phone.send_by_bridge({"id_front": "1", "id_back": "2"}[document_type])
        await phone.send_by_bridge("cancel")
    response = await services_driver.gateway.post(
        f"/api/v1/subscribers/{subscriber['id']}/kyc-decision",
        json={"decision": "approve", "kyc_level": 2},
        auth=await services_driver.harness.create_admin("C"),
    )
    assert response.status_code == 200, response.text
    assert "level 2" in await phone.send_by_bridge("limits")
    assert await database.fetchval("SELECT count(*) FROM messages WHERE template = 'kyc_decided'")


@pytest.mark.parametrize(
    ("language", "output"), [("english", "several photos"), ("français", "plusieurs photos")]
)
async def test_limit_per_document_type_is_explained_in_the_chat(
    services_driver: ServicesDriver, messenger: MessengerDriver, language: str, output: str
) -> None:
    subscriber = await services_driver.harness.create_subscriber()
    phone = messenger.create_phone(subscriber["phone_number"])
    sent = {"messageType": "image", "hasMedia": True, "media": build_media(PNG, "image/png")}
    await phone.send_by_bridge("language")
    await phone.send_by_bridge(language)
    for _ in range(5):
        await phone.send_by_bridge("kyc")
        await phone.send_by_bridge("1")
        response = await phone.post_to_bridge(**sent)
        assert response.status_code == 200
    assert output in response.json()["answer"]
    assert len(await list_documents(services_driver, subscriber["id"])) == 4
    # Another document type is still accepted.
    await phone.send_by_bridge("3")
    assert output not in (await phone.post_to_bridge(**sent)).json()["answer"]
    assert len(await list_documents(services_driver, subscriber["id"])) == 5


async def test_daily_document_limit_is_explained_in_the_chat(
    services_driver: ServicesDriver, messenger: MessengerDriver
) -> None:
    subscriber = await services_driver.harness.create_subscriber()
    await services_driver.harness.database.execute(
        """INSERT INTO kyc_documents (id, subscriber_id, document_type, media_type, image,
                                      created_at, decided_at)
           SELECT n, s.id, 'selfie', 'image/png', '', now(), now()
           FROM generate_series(1, 20) AS n, subscribers s WHERE s.phone_number = $1""",
        subscriber["phone_number"],
    )
    phone = messenger.create_phone(subscriber["phone_number"])
    await phone.send_by_bridge("kyc")
    await phone.send_by_bridge("1")
    sent = {"messageType": "image", "hasMedia": True, "media": build_media(PNG, "image/png")}
    response = await phone.post_to_bridge(**sent)
    assert "in one day" in response.json()["answer"]
    assert len(await list_documents(services_driver, subscriber["id"])) == 20
