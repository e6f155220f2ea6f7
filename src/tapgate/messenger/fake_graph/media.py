"""Files that people have sent: found by their id, fetched from an address that dies soon."""

import hashlib
import secrets
from datetime import datetime, timedelta
from typing import Any

import msgspec

from tapgate.messenger.fake_graph.errors import FakeError


class File(msgspec.Struct, frozen=True, kw_only=True):
    content: bytes
    mime_type: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


class Media:
    def __init__(self, lives: timedelta) -> None:
        self._lives = lives
        self._files: dict[str, File] = {}
        self._addresses: dict[str, tuple[File, datetime]] = {}

    def add(self, content: bytes, mime_type: str) -> str:
        media_id = str(10**14 + secrets.randbelow(10**14))
        self._files[media_id] = File(content=content, mime_type=mime_type)
        return media_id

    def file(self, media_id: str) -> File:
        if media_id not in self._files:
            sentence = f"Object with ID '{media_id}' does not exist"
            raise FakeError(100, sentence, subcode=33)
        return self._files[media_id]

    def look_up(self, media_id: str, origin: str, now: datetime) -> dict[str, Any]:
        file = self.file(media_id)
        address = secrets.token_urlsafe(16)
        self._addresses[address] = (file, now + self._lives)
        return {
            "messaging_product": "whatsapp",
            "url": f"{origin}/_media/{address}",
            "mime_type": file.mime_type,
            "sha256": file.sha256,
            "file_size": len(file.content),
            "id": media_id,
        }

    def fetch(self, address: str, now: datetime) -> File | None:
        file, until = self._addresses.get(address, (None, now))
        return file if now < until else None
