"""Media files sent by users, served from short-lived URLs."""

import hashlib
import secrets
from datetime import datetime, timedelta
from typing import Any

import msgspec

from tapgate_sandbox.fake_provider.errors import GraphApiError


class MediaFile(msgspec.Struct, frozen=True, kw_only=True):
    content: bytes
    mime_type: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


class MediaStore:
    def __init__(self, url_lifetime: timedelta) -> None:
        self._url_lifetime = url_lifetime
        self._files: dict[str, MediaFile] = {}
        self._urls: dict[str, tuple[MediaFile, datetime]] = {}

    def add(self, content: bytes, mime_type: str) -> str:
        media_id = str(10**14 + secrets.randbelow(10**14))
        self._files[media_id] = MediaFile(content=content, mime_type=mime_type)
        return media_id

    def get_file(self, media_id: str) -> MediaFile:
        if media_id not in self._files:
            message = f"Object with ID '{media_id}' does not exist"
            raise GraphApiError(100, message, subcode=33)
        return self._files[media_id]

    def create_url(self, media_id: str, origin: str, now: datetime) -> dict[str, Any]:
        file = self.get_file(media_id)
        url_token = secrets.token_urlsafe(16)
        self._urls[url_token] = (file, now + self._url_lifetime)
        return {
            "messaging_product": "whatsapp",
            "url": f"{origin}/_media/{url_token}",
            "mime_type": file.mime_type,
            "sha256": file.sha256,
            "file_size": len(file.content),
            "id": media_id,
        }

    def fetch(self, url_token: str, now: datetime) -> MediaFile | None:
        file, expires_at = self._urls.get(url_token, (None, now))
        return file if now < expires_at else None
