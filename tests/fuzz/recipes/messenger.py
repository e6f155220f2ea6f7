"""Prerequisites for messenger operations."""

from drivers.messenger import FlowClient, build_flow_key
from fuzz.callers import Caller
from fuzz.recipes.recipe import V1, Prerequisites, register_recipe
from fuzz.values import ABSENT, RequestSubjects
from tapgate_client.schemas.subscribers import ImageRule


@register_recipe(f"POST {V1}/webhooks/messaging/flows", f"POST {V1}/simulator/flows")
async def prepare_ping(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    sealed = FlowClient(build_flow_key()[1]).encrypt({"version": "3.0", "action": "ping"})
    return Prerequisites(content=(sealed, "application/json"))


@register_recipe(f"POST {V1}/external/messaging")
async def prepare_message(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    text = subjects.rng.choice(
        ["menu", "balance", "send 5 to 076 123456", "1", "history", "français"]
    )
    content = subjects.rng.choice(
        [
            {"message": text, "hasMedia": False, "media": ABSENT},
            {"hasMedia": True, "media": {"data": ImageRule.example, "mimetype": "image/png"}},
        ]
    )
    return Prerequisites(body={"from": subjects.subscriber.phone, **content})
