"""Webhook bodies in the provider's format."""

import json
from typing import Any

#: The provider's documented example of a text message, with all optional parts.
DOCUMENTED_DELIVERY: dict[str, Any] = {
    "object": "whatsapp_business_account",
    "entry": [
        {
            "id": "102290129340398",
            "changes": [
                {
                    "value": {
                        "messaging_product": "whatsapp",
                        "metadata": {
                            "display_phone_number": "15550783881",
                            "phone_number_id": "106540352242922",
                        },
                        "contacts": [{"profile": {"name": "Aminata"}, "wa_id": "23276123456"}],
                        "messages": [
                            {
                                "from": "23276123456",
                                "id": "wamid.HBgLMTY1MDM4Nzk0MzkVAgASGBQzQTRBNjU5OUFFRTA=",
                                "timestamp": "1749416383",
                                "type": "text",
                                "text": {"body": "balance"},
                            }
                        ],
                    },
                    "field": "messages",
                }
            ],
        }
    ],
}


def build_message(kind: str, part: object, **others: object) -> dict[str, Any]:
    common = {"from": "23276123456", "id": "wamid.1", "timestamp": "1749416383", "type": kind}
    return common | {kind: part} | others


def build_delivery(*messages: object, **value: object) -> bytes:
    return json.dumps(
        {"entry": [{"changes": [{"value": {"messages": list(messages)} | value}]}]}
    ).encode()
