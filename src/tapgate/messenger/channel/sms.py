"""Client for the SMS provider.

The URL is the operator's own setting. Redirects are not followed and no proxy is used, so the token
and the texts reach no other host. The provider recognizes a repeated request by its `id`.
"""

from typing import Final

import msgspec

from tapgate.runtime.http_client import HttpClient

TIMEOUT_SECONDS: Final = 10.0


class SmsMessage(msgspec.Struct, frozen=True, kw_only=True):
    """Request body for one SMS."""

    id: str
    to: str
    text: str
    template: str

    def __repr__(self) -> str:
        return f"SmsMessage(id={self.id!r})"  # the text may contain a one-time code


class SmsError(Exception):
    """The provider did not accept the message. `code` is the status or an exception's name."""

    def __init__(self, code: str, *, is_retryable: bool) -> None:
        super().__init__(code)
        self.code = code
        self.is_retryable = is_retryable


class SmsClient:
    def __init__(self, url: str, token: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._url = url
        self._headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        self._http = HttpClient(timeout_seconds=timeout_seconds)

    async def send(self, message: SmsMessage) -> None:
        """Send an SMS. If the outcome is unknown, raise a retryable error."""
        content = msgspec.json.encode(message)
        try:
            response = await self._http.post(self._url, content=content, headers=self._headers)
        except Exception as error:  # no connection, a time-out or an invalid response
            raise SmsError(type(error).__name__, is_retryable=True) from None
        status = response.status_code
        if not 200 <= status < 300:
            raise SmsError(f"status {status}", is_retryable=status >= 500)

    def close(self) -> None:
        self._http.close()
