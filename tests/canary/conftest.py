from canary.fixtures import settings, watch
from edge.log_lines import lines

__all__ = ["lines", "settings", "watch"]
