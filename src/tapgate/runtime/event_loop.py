"""The fastest event loop of the platform: uvloop, except on Windows."""

import sys

if sys.platform == "win32":
    from asyncio import run
else:
    from uvloop import run

__all__ = ["run"]
