from builders.http_apps import log_capture
from secret_leaks.fixtures import leak_detector, settings

__all__ = ["leak_detector", "log_capture", "settings"]
