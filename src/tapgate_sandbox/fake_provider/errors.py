"""Error responses in the WhatsApp Graph API format."""

import secrets
from typing import Any

_MESSAGES = {
    100: "Invalid parameter",
    190: "Invalid OAuth access token",
    130429: "Rate limit hit",
    131000: "Something went wrong",
    131008: "Required parameter is missing",
    131009: "Parameter value is not valid",
    131026: "Message undeliverable",
    131047: "Re-engagement message",
    131051: "Unsupported message type",
    131056: "(Business Account, Consumer Account) pair rate limit hit",
    132000: "Number of parameters does not match the expected number of params",
    132001: "Template name does not exist in the translation",
}
_STATUSES = {190: 401, 131000: 500, 131016: 503}


class GraphApiError(Exception):
    """Error that the fake Graph API returns to the client."""

    def __init__(
        self, code: int, details: str, *, status: int | None = None, subcode: int | None = None
    ) -> None:
        super().__init__(code)
        self.code = code
        self.status = status or _STATUSES.get(code, 400)
        self._details = details
        self._subcode = subcode

    def body(self) -> dict[str, Any]:
        error: dict[str, Any] = {
            "message": f"(#{self.code}) {_MESSAGES.get(self.code, 'Failed')}",
            "type": "OAuthException",
            "code": self.code,
            "error_data": {"messaging_product": "whatsapp", "details": self._details},
            "fbtrace_id": secrets.token_urlsafe(8),
        }
        if self._subcode is not None:
            error["error_subcode"] = self._subcode
        return {"error": error}


def build_missing_error(name: str) -> GraphApiError:
    return GraphApiError(131008, f"Parameter '{name}' is mandatory")


def build_invalid_error(name: str, message: str) -> GraphApiError:
    return GraphApiError(131009, f"Parameter '{name}' {message}")
