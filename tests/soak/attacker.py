"""`python -m soak.attacker SHAPE SERVICE PORT`: one hostile client, until it is killed."""

import asyncio
import sys

from soak.shapes import SHAPES, Target


async def main() -> None:
    name, service, port = sys.argv[1:]
    print("started", flush=True)
    await SHAPES[name].attack(Target(service, int(port)))


asyncio.run(main())
