"""The id under which a request is traced: the client's own, or one that is made here."""

import secrets
from collections.abc import Mapping
from itertools import count

_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
_LENGTH = 128


class RequestIds:
    def __init__(self) -> None:
        self._made = map(f"{secrets.token_hex(6)}-{{:x}}".format, count(1))

    def of(self, headers: Mapping[bytes, bytes]) -> str:
        given = headers.get(b"x-request-id")
        if not given or len(given) > _LENGTH or given.translate(None, _LETTERS):
            return next(self._made)
        return given.decode("ascii")
