"""Password hashing parameters for tests."""

from typing import Final

import argon2

FAST_ARGON2: Final = argon2.Parameters(argon2.Type.ID, 19, 16, 32, 1, 8, 1)
