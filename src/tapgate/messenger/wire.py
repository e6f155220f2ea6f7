"""The messenger's connections: refusals on them are like all of its refusals."""

from tapgate.messenger.routes.route import Refusal, refused
from tapgate.service import wire
from tapgate.service.http import Answer


class Wire(wire.Wire):
    @staticmethod
    def not_http(sentence: str) -> Answer:
        return refused(Refusal(400, sentence))
