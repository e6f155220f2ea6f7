"""The gateway's HTTP protocol, with errors in the format of its API."""

from tapgate.edge import responses
from tapgate.errors import ApiError
from tapgate.service import http_protocol
from tapgate.service.http import Response


class HttpProtocol(http_protocol.HttpProtocol):
    @staticmethod
    def render_error(error: ApiError) -> Response:
        return responses.render_error(error)
