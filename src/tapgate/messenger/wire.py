"""The messenger's HTTP connections, with errors in its own format."""

from tapgate.errors import ApiError
from tapgate.messenger.routes.route import Refusal, refused
from tapgate.service import wire
from tapgate.service.http import Answer


class Wire(wire.Wire):
    @staticmethod
    def render_error(error: ApiError) -> Answer:
        return refused(Refusal(error.status, error.message or error.error, headers=error.headers))
