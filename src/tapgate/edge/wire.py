"""The gateway's HTTP connections, with errors in the format of its API."""

from tapgate.edge import answers
from tapgate.errors import ApiError
from tapgate.service import wire
from tapgate.service.http import Answer


class Wire(wire.Wire):
    @staticmethod
    def render_error(error: ApiError) -> Answer:
        return answers.of_refusal(error)
