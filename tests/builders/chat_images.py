"""Images sent in chats."""

import base64
import io
from typing import Any

from PIL import Image

from drivers.messenger import ServicesDriver


def build_image(form: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (60, 40), (200, 0, 0)).save(file, form)
    return file.getvalue()


JPEG, PNG = build_image("JPEG"), build_image("PNG")


def build_media(content: bytes, announced: str, mimetype: str | None = None) -> dict[str, Any]:
    data = f"data:{announced};base64,{base64.b64encode(content).decode()}"
    return {"data": data, "mimetype": mimetype or announced, "filename": "id", "size": len(content)}


async def list_documents(
    services_driver: ServicesDriver, subscriber_id: str
) -> list[dict[str, Any]]:
    response = await services_driver.gateway.get(
        f"/api/v1/subscribers/{subscriber_id}/kyc-documents",
        auth=await services_driver.harness.create_admin("C"),
    )
    data: list[dict[str, Any]] = response.json()["data"]
    return data
