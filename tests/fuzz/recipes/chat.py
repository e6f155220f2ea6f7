"""Before the messenger can be asked."""

from fuzz.callers import Caller
from fuzz.recipes.recipe import V1, Ready, recipe
from fuzz.values import ABSENT, Company
from messenger.journeys.town import flow_key
from tapgate.messenger.flows.flow_client import FlowClient
from tapgate.subscribers.kyc_documents.model import ImageRule


@recipe(f"POST {V1}/webhooks/messaging/flows", f"POST {V1}/simulator/flows")
async def ping(here: Company, _: Caller) -> Ready:
    sealed = FlowClient(flow_key()[1]).encrypt({"version": "3.0", "action": "ping"})
    return Ready(content=(sealed, "application/json"))


@recipe(f"POST {V1}/external/messaging")
async def picture_or_words(here: Company, _: Caller) -> Ready:
    words = here.rng.choice(["menu", "balance", "send 5 to 076 123456", "1", "history", "français"])
    chosen = here.rng.choice(
        [
            {"message": words, "hasMedia": False, "media": ABSENT},
            {"hasMedia": True, "media": {"data": ImageRule.example, "mimetype": "image/png"}},
        ]
    )
    return Ready(body={"from": here.person.phone, **chosen})
