"""Requests about kept images, which the messenger handles itself in `kept_images.py`."""

from tapgate.messenger.gateway_requests import GatewayRequest
from tapgate.schemas.subscribers import KycDocumentType


class CountKeptImages(GatewayRequest, frozen=True, kw_only=True):
    """Count the person's images that wait for their document type."""


class AddKeptDocument(GatewayRequest, frozen=True, kw_only=True):
    """Upload the oldest kept image. The result is the number of images that are left.

    Without a `document_type`, the image is discarded. The result is None if the image has expired.
    """

    subscriber_id: str
    document_type: KycDocumentType | None
