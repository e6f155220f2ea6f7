"""Separate gateway process that submits a wrong PIN many times concurrently.

    python pin_guess_process.py SUBSCRIBER_ID TIMES

It prints `ready`, waits for a line on stdin, and then prints the error code of each response.
"""

import asyncio
import os
import sys

import httpx2

from harness import WRONG_PIN, Harness
from tapgate.gateway import create_app, open_services
from tapgate.settings import load_settings


async def guess_pins(subscriber_id: str, times: int) -> None:
    settings = load_settings(os.environ)
    assert settings.database_url is not None
    async with open_services(settings, settings.database_url) as services:
        transport = httpx2.ASGITransport(app=create_app(services))
        async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:
            messenger = Harness(services, client).get_service_auth()
            print("ready", flush=True)
            await asyncio.to_thread(sys.stdin.readline)
            url = f"/api/v1/subscribers/{subscriber_id}/verify-pin"
            responses = await asyncio.gather(
                *(client.post(url, json={"pin": WRONG_PIN}, auth=messenger) for _ in range(times))
            )
    for response in responses:
        print(response.json()["code"])


if __name__ == "__main__":
    asyncio.run(guess_pins(sys.argv[1], int(sys.argv[2])))
