"""Protocol between the supervisor and its worker processes.

Separate from the worker module, so that the supervisor and the CLI do not import a web server.
"""

from typing import Final

#: Environment variables with the numbers of inherited file descriptors: the listening socket, and
#: the lifeline, one end of a socket pair shared with the supervisor. On the lifeline, the worker
#: sends READY_BYTE once it is ready. End of file means that the supervisor has died.
LISTENER_FD_VARIABLE: Final = "TAPGATE_LISTENER_FD"
LIFELINE_FD_VARIABLE: Final = "TAPGATE_LIFELINE_FD"
READY_BYTE: Final = b"1"

#: Socket path on which report workers listen. Unset if reports run in the gateway workers.
REPORT_SOCKET_VARIABLE: Final = "TAPGATE_REPORT_SOCKET"
#: Set for a report worker, which runs the gateway's module.
REPORT_WORKER_VARIABLE: Final = "TAPGATE_REPORT_WORKER"

LISTEN_BACKLOG: Final = 2048

#: Time limit for open requests once a worker no longer accepts connections.
DRAIN_TIMEOUT_SECONDS: Final = 10
