from canary.fixtures import leak_detector, settings
from edge.log_capture import log_capture

__all__ = ["leak_detector", "log_capture", "settings"]
