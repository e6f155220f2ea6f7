"""HTTP protocol that renders its errors in the messenger's format."""

from tapgate.errors import ApiError
from tapgate.http import protocol as http_protocol
from tapgate.http.messages import Response
from tapgate.messenger.routes.route import HttpError, render_http_error


class MessengerHttpProtocol(http_protocol.HttpProtocol):
    @staticmethod
    def render_error(error: ApiError) -> Response:
        return render_http_error(
            HttpError(error.status, error.message or error.error, headers=error.headers)
        )
