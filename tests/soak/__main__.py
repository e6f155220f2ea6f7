"""`python -m soak`: run every hostile client for some time against both services."""

import argparse
import asyncio
import tempfile
from pathlib import Path

from soak.run import Measurement, measure, run_services
from soak.shapes import SHAPES
from tapgate.runtime.store.embedded import EmbeddedPostgres


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="per shape and service")
    parser.add_argument("--shape", choices=[*SHAPES], action="append", help="default: all")
    arguments = parser.parse_args()
    measurements = asyncio.run(run_all(arguments.seconds, arguments.shape or [*SHAPES]))
    failed = [one for one in measurements if not (one.is_flat and one.is_fast)]
    for measurement in failed:
        print(f"FAILED {measurement}")
    return 1 if failed else 0


async def run_all(seconds: float, names: list[str]) -> list[Measurement]:
    measurements = []
    with tempfile.TemporaryDirectory(prefix="tapgate-soak-") as folder:
        server = EmbeddedPostgres(Path(folder) / "store")
        try:
            async with run_services(Path(folder), server.start()) as services:
                for name in names:
                    for service in SHAPES[name].services:
                        measurement = await measure(services, SHAPES[name], service, seconds)
                        print(measurement, flush=True)
                        measurements.append(measurement)
        finally:
            server.stop()
    return measurements


if __name__ == "__main__":
    raise SystemExit(main())
