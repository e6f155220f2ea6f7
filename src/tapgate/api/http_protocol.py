"""The gateway's HTTP protocol, with errors in the format of its API."""

from tapgate.api import responses
from tapgate.errors import ApiError
from tapgate.http import protocol as http_protocol
from tapgate.http.messages import Response


class HttpProtocol(http_protocol.HttpProtocol):
    @staticmethod
    def render_error(error: ApiError) -> Response:
        return responses.render_error(error)
