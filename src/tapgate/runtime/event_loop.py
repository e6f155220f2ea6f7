"""The fastest available event loop: uvloop, except on Windows."""

import sys

if sys.platform == "win32":
    from asyncio import run
else:
    from uvloop import run

__all__ = ["run"]
