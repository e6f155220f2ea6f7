from tapgate.messenger.model.events import Meaning
from tapgate.messenger.model.kinds import Language
from tapgate.messenger.understanding.resolver import resolve


class Understanding:
    def __init__(self, url: str | None) -> None:
        self._url = url

    async def understand(self, text: str, language: Language | None) -> Meaning:
        return resolve(text, language)
