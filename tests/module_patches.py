"""Changes to modules for tests, made when a module is first imported.

Importing all these modules at the start would take longer than most test files that need none.
"""

import functools
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

import examples

Patch = Callable[[Any], None]

#: Test servers have many small databases, possibly in memory. PostgreSQL searches all buffers
#: when a table or database is dropped.
_SERVER_SETTINGS: Final = {
    "shared_buffers": "128MB",
    "min_wal_size": "80MB",
    "max_wal_size": "256MB",
}
#: Production fails fast when the database is down or another process hangs. Tests get longer
#: timeouts, because a loaded machine may stall for some seconds.
_TIMEOUT_SECONDS: Final = 30.0
_CLIENT_TIMEOUT_SECONDS: Final = 60.0
#: Patches by module name.
PATCHES: dict[str, Patch] = {}


def _on_import(name: str) -> Callable[[Patch], Patch]:
    def register(patch: Patch) -> Patch:
        PATCHES[name] = patch
        return patch

    return register


def install() -> None:
    """Patch the modules that are imported already, and all others when they are imported."""
    for name in PATCHES.keys() & sys.modules.keys():
        PATCHES[name](sys.modules[name])
    sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Finds modules with the other finders, and adds the patch."""

    def __init__(self) -> None:
        self._searched: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in PATCHES or fullname in self._searched:
            return None
        self._searched.add(fullname)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._searched.remove(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _PatchingLoader(spec.loader, PATCHES[fullname])
        return spec


class _PatchingLoader(Loader):
    def __init__(self, loader: Loader, patch: Patch) -> None:
        self._loader = loader
        self._patch = patch

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._patch(module)


@_on_import("hypothesis")
def _load_profile(hypothesis: Any) -> None:
    """Load settings for tests.

    There is no deadline, because an example's duration depends on the machine's load. Health checks
    are off, because sharing a function-scoped fixture between examples is intended.
    """
    hypothesis.settings.register_profile(
        "tests", deadline=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    hypothesis.settings.load_profile("tests")


@_on_import("hypothesis.internal.conjecture.providers")
def _skip_local_constants(providers: Any) -> None:
    """Otherwise, every process would parse all modules to use their constants in examples."""
    if not examples.is_complete():
        providers._get_local_constants = lambda: providers._local_constants


@_on_import("structlog")
def _simplify_tracebacks(structlog: Any) -> None:
    """Structlog's default renders each traceback with rich, which takes half a second."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.dev.ConsoleRenderer(
                colors=False, exception_formatter=structlog.dev.plain_traceback
            ),
        ]
    )


@_on_import("httpcore2")
def _share_root_certificates(httpcore2: Any) -> None:
    """Otherwise, every httpx2 client would read all root certificates, even without TLS."""
    httpcore2.default_ssl_context = functools.cache(httpcore2.default_ssl_context)


@_on_import("httpx2._config")
def _extend_client_timeout(config: Any) -> None:
    """Let clients without an explicit timeout wait a minute instead of five seconds."""
    for phase in ("connect", "read", "write", "pool"):
        setattr(config.DEFAULT_TIMEOUT_CONFIG, phase, _CLIENT_TIMEOUT_SECONDS)


@_on_import("httpx2")
def _find_sniffio_once(_: Any) -> None:
    """Stop import attempts for sniffio, which httpx2 makes for every request.

    If sniffio is not installed, every attempt searches sys.path; None in sys.modules makes the
    import fail immediately.
    """
    if importlib.util.find_spec("sniffio") is None:
        sys.modules["sniffio"] = None  # type: ignore[assignment]


@_on_import("tapgate.auth.authenticator")
def _hash_passwords_fast(authenticator: Any) -> None:
    """Hash passwords fast, since most tests log an admin in.

    Hashing as in production would take longer than the rest of such a test; tests/auth covers it.
    """
    from builders.passwords import FAST_ARGON2

    authenticator.Passwords = functools.partial(authenticator.Passwords, FAST_ARGON2)


@_on_import("tapgate.runtime.store.embedded")
def _configure_server(embedded: Any) -> None:
    build = embedded.build_server_settings
    embedded.build_server_settings = lambda data_dir: build(data_dir) | _SERVER_SETTINGS


def _extend_timeout(constant: str) -> Patch:
    return lambda module: setattr(module, constant, _TIMEOUT_SECONDS)


_on_import("tapgate.http.backlog_metrics")(_extend_timeout("TIMEOUT_SECONDS"))
_on_import("tapgate.runtime.health")(_extend_timeout("PROBE_TIMEOUT_SECONDS"))
_on_import("tapgate.runtime.store.database")(_extend_timeout("DATABASE_TIMEOUT_SECONDS"))
_on_import("tapgate.runtime.store.signals")(_extend_timeout("ACK_TIMEOUT_SECONDS"))
