"""HTTP protocol that renders its errors in the messenger's format."""

from tapgate.errors import ApiError
from tapgate.messenger.routes.route import HttpError, render_http_error
from tapgate.service import http_protocol
from tapgate.service.http import Response


class MessengerHttpProtocol(http_protocol.HttpProtocol):
    @staticmethod
    def render_error(error: ApiError) -> Response:
        return render_http_error(
            HttpError(error.status, error.message or error.error, headers=error.headers)
        )
