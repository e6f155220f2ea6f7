"""The messenger wired together: what one process needs, started and in the end stopped."""

import structlog

#: What the messenger calls itself when it signs to the gateway.
SERVICE_NAME = "messenger"

_log = structlog.get_logger()
