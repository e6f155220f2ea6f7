"""Quick process start: `python -m tapgate.runtime.quick_start MODULE` runs a service's module.

Imports take most of the time that a process needs to start.
"""

import gc
import runpy
import sys
from typing import Final

_GC_THRESHOLD: Final = 50_000


def prepare_imports() -> None:
    """Make later imports faster. Call it before them.

    With the default threshold, hundreds of garbage collections would scan the growing number of
    modules, which are never garbage. structlog imports rich if it is installed, for console
    output. Tapgate logs JSON, and rich takes longer to import than all other parts of structlog.
    """
    gc.set_threshold(_GC_THRESHOLD)
    if "rich" not in sys.modules:
        sys.modules["rich"] = None  # type: ignore[assignment]  # `import rich` fails
        try:
            import structlog  # noqa: F401, PLC0415
        finally:
            del sys.modules["rich"]


if __name__ == "__main__":
    prepare_imports()
    module = sys.argv.pop(1)
    runpy.run_module(module, run_name="__main__", alter_sys=True)
