"""What a supervisor and its worker processes agree on.

Separate from the worker: the supervisor, and with it every command, starts without a web server.
"""

from typing import Final

#: The inherited descriptors: the listening socket, and one end of a socket pair of which the
#: supervisor holds the other. The worker sends READY; end-of-file means that the supervisor died.
LISTENER_FD_VARIABLE: Final = "TAPGATE_LISTENER_FD"
LIFELINE_FD_VARIABLE: Final = "TAPGATE_LIFELINE_FD"
READY_BYTE: Final = b"1"

#: How long open requests may take to finish once the process is told to stop.
DRAIN_TIMEOUT_SECONDS: Final = 10
