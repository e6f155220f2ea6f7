"""Chat requests for services that are not offered, in the overview and the metrics."""

from builders.timeline import build_turn
from harness import Harness


async def list_services(harness: Harness) -> list[dict[str, object]]:
    overview = await harness.get("/api/v1/overview", auth=await harness.create_admin("A"))
    services: list[dict[str, object]] = overview.json()["unavailable_services"]
    return services


async def test_requests_and_customers_are_counted_by_service(harness: Harness) -> None:
    first, second = [await harness.create_subscriber() for _ in range(2)]
    assert await list_services(harness) == []
    phones = [first["phone_number"], first["phone_number"], second["phone_number"]]
    turns = [build_turn(harness, phone, command="airtime") for phone in phones]
    turns += [build_turn(harness, phones[0], command=command) for command in ("loans", "balance")]
    for _ in range(2):  # a repeated report counts once
        await harness.post(
            "/api/v1/chat/turns", json={"data": turns}, auth=harness.get_service_auth()
        )
    assert await list_services(harness) == [
        {"service": "airtime", "requests": 3, "customers": 2},
        {"service": "loans", "requests": 1, "customers": 1},
    ]
    metrics = (await harness.get("/metrics")).text
    assert 'tapgate_unavailable_service_requests_total{service="airtime"} 3' in metrics
