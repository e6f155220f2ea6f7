"""The gateway's connections: refusals on them are the interface's."""

from tapgate.edge import answers
from tapgate.errors import ApiError, Code
from tapgate.service import wire
from tapgate.service.http import Answer


class Wire(wire.Wire):
    @staticmethod
    def not_http(sentence: str) -> Answer:
        return answers.of_refusal(ApiError(Code.INVALID_REQUEST, sentence))
