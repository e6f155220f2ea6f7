"""P2P transfers and their recalls, over HTTP."""

from typing import Any

import httpx2

from harness import PIN, Harness

V1 = "/api/v1"


async def send_p2p(
    harness: Harness, sender: dict[str, Any], receiver: dict[str, Any], amount: str = "100"
) -> str:
    """Transfer money with the PIN, and return the transaction ID."""
    body = {
        "sender_id": sender["id"],
        "recipient_phone_number": receiver["phone_number"],
        "amount": amount,
        "pin": PIN,
    }
    response = await harness.post(
        f"{V1}/wallet/transfer-p2p", json=body, auth=harness.get_service_auth()
    )
    assert response.status_code == 200, response.text
    transaction_id: str = response.json()["transaction_id"]
    return transaction_id


async def recall(
    harness: Harness, transaction_id: str, auth: Any = None, **fields: Any
) -> httpx2.Response:
    """Recall a transfer, by default as a service with the sender PIN."""
    body = {"request_id": f"recall {transaction_id}", "pin": PIN, **fields}
    return await harness.post(
        f"{V1}/transactions/{transaction_id}/recall",
        json={name: value for name, value in body.items() if value is not None},
        auth=auth or harness.get_service_auth(),
    )
