"""Requests about identity documents. The messenger handles those about kept images itself."""

from tapgate.images import EncodedImage
from tapgate.messenger.gateway_requests.base import GatewayRequest
from tapgate_client import AsyncTapgateClient
from tapgate_client.schemas.subscribers import KycDocumentType


class AddDocument(GatewayRequest, frozen=True, kw_only=True):
    subscriber_id: str
    document_type: KycDocumentType
    image: EncodedImage

    async def perform(self, gateway: AsyncTapgateClient) -> None:
        await gateway.subscribers.add_kyc_document(
            self.subscriber_id, document_type=self.document_type, image=self.image.content
        )


class CountKeptImages(GatewayRequest, frozen=True, kw_only=True):
    """Count the person's images that wait for their document type."""


class AddKeptDocument(GatewayRequest, frozen=True, kw_only=True):
    """Upload the oldest kept image. The result is the number of images that are left.

    Without a `document_type`, the image is discarded. The result is None if the image has expired.
    """

    subscriber_id: str
    document_type: KycDocumentType | None
