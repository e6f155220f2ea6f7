"""Fake provider entry point.

python -m tapgate_sandbox.fake_provider --port 8002 --callback URL
"""

import argparse
import asyncio
import contextlib

from tapgate_sandbox.fake_provider.provider import Provider
from tapgate_sandbox.fake_provider.server import serve
from tapgate_sandbox.fake_provider.sms import SmsProvider


async def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tapgate_sandbox.fake_provider")
    parser.add_argument("--port", type=int, default=8002)
    parser.add_argument("--callback", help="URL of the messenger's webhook")
    parser.add_argument("--app-secret", help="secret that signs deliveries")
    parser.add_argument("--access-token", default="fake-access-token")
    parser.add_argument("--phone-number-id", default="100000000000000")
    parser.add_argument("--sms-callback", help="URL of the messenger's SMS status endpoint")
    parser.add_argument("--sms-token", default="fake-sms-token")
    arguments = parser.parse_args()
    provider = Provider(
        access_token=arguments.access_token,
        phone_number_id=arguments.phone_number_id,
        callback=arguments.callback,
        app_secret=arguments.app_secret,
        sms=SmsProvider(token=arguments.sms_token, callback=arguments.sms_callback),
    )
    async with serve(provider, arguments.port) as url:
        print(f"The fake provider listens on {url}.", flush=True)
        await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())
