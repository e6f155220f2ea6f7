"""Request IDs for tracing: the client's `X-Request-ID` if valid, otherwise a generated one."""

import secrets
from collections.abc import Mapping
from itertools import count

_ALLOWED_CHARACTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
_MAX_LENGTH = 128


class RequestIdSource:
    def __init__(self) -> None:
        self._generated_ids = map(f"{secrets.token_hex(6)}-{{:x}}".format, count(1))

    def get_or_create(self, headers: Mapping[bytes, bytes]) -> str:
        request_id = headers.get(b"x-request-id")
        if (
            not request_id
            or len(request_id) > _MAX_LENGTH
            or request_id.translate(None, _ALLOWED_CHARACTERS)
        ):
            return next(self._generated_ids)
        return request_id.decode("ascii")
