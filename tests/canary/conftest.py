from canary.fixtures import settings, watch
from edge.log_capture import lines

__all__ = ["lines", "settings", "watch"]
