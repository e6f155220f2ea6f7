"""Distribution of tests among processes."""

from xdist.scheduler import LoadScopeScheduling

from start_order import get_single_process_path


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Runs each test in any process, except tests that share an expensive fixture."""

    def _split_scope(self, nodeid: str) -> str:
        return get_single_process_path(nodeid) or nodeid
