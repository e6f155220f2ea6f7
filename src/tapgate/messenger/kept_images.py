"""Images whose document type is not known yet: sealed, limited per person, and deleted soon.

A person's image is kept until the person has chosen its document type, so that it does not
have to be sent again.
"""

from datetime import timedelta
from typing import Final

from tapgate.core.images import EncodedImage
from tapgate.messenger.conversation.state import MAX_KEPT_IMAGES
from tapgate.messenger.gateway_requests import AddKeptDocument, client_request
from tapgate.messenger.model import RequestOutcome, RequestRejected, RequestSucceeded
from tapgate.messenger.services import Services
from tapgate_client.errors import Code

IMAGE_LIFETIME: Final = timedelta(hours=1)
_HASH_PURPOSE: Final = "kept image"
#: Rejections after which the image is still useful, for another document type or later.
_RETRYABLE_CODES: Final = frozenset({Code.RATE_LIMITED, Code.SERVICE_UNAVAILABLE})


async def keep(services: Services, address: str, image: EncodedImage) -> None:
    """Keep an image. An image that is already kept, for example by a retried turn, is kept once."""
    image_id, now = services.new_id(), services.clock()
    await services.database.execute(
        """INSERT INTO messenger.images (id, address, digest, media_type, sealed, expires_at)
           SELECT $1, $2, $3, $4, $5, $6
           WHERE (SELECT count(*) FROM messenger.images
                  WHERE address = $2 AND expires_at > $7) < $8
           ON CONFLICT (address, digest) DO UPDATE SET expires_at = excluded.expires_at""",
        image_id,
        address,
        services.vault.keyed_hash(_HASH_PURPOSE, image.content),
        image.media_type,
        services.vault.seal(image.content, get_sealing_context(image_id)),
        now + IMAGE_LIFETIME,
        now,
        MAX_KEPT_IMAGES,
    )


async def count(services: Services, address: str) -> int:
    number: int = await services.database.fetchval(
        "SELECT count(*) FROM messenger.images WHERE address = $1 AND expires_at > $2",
        address,
        services.clock(),
    )
    return number


async def delete_all(services: Services, address: str) -> None:
    await services.database.execute("DELETE FROM messenger.images WHERE address = $1", address)


async def add_document(
    services: Services, address: str, request: AddKeptDocument
) -> RequestOutcome:
    """Upload or discard the oldest kept image, and delete it unless the upload can be retried."""
    row = await services.database.fetchrow(
        """SELECT id, sealed FROM messenger.images
           WHERE address = $1 AND expires_at > $2 ORDER BY id LIMIT 1""",
        address,
        services.clock(),
    )
    if row is None:
        return RequestSucceeded(result=None)
    outcome: RequestOutcome = RequestSucceeded(result=None)
    if request.document_type is not None:
        content = services.vault.open(row["sealed"], get_sealing_context(row["id"]))
        outcome = await services.perform_request(
            client_request(
                "subscribers.add_kyc_document",
                request.subscriber_id,
                document_type=request.document_type,
                image=content,
            )
        )
    is_rejected = isinstance(outcome, RequestRejected) and outcome.code not in _RETRYABLE_CODES
    if isinstance(outcome, RequestSucceeded) or is_rejected:
        await services.database.execute("DELETE FROM messenger.images WHERE id = $1", row["id"])
    if isinstance(outcome, RequestSucceeded):
        return RequestSucceeded(result=await count(services, address))
    return outcome


def get_sealing_context(image_id: int) -> bytes:
    return b"image %d" % image_id
