"""The messenger's HTTP connections, with errors in its own format."""

from tapgate.errors import ApiError
from tapgate.messenger.routes.route import Refusal, refused
from tapgate.service import http_protocol
from tapgate.service.http import Response


class Wire(http_protocol.HttpProtocol):
    @staticmethod
    def render_error(error: ApiError) -> Response:
        return refused(Refusal(error.status, error.message or error.error, headers=error.headers))
