"""Payment benchmark with and without the request log.

python -m bench.request_log
"""

from bench.comparison import Variant, build_parser, compare


def main() -> None:
    options = build_parser("python -m bench.request_log", __doc__).parse_args()
    compare(
        {
            "off": Variant(1, {"TAPGATE_REQUEST_LOG_DAYS": "0"}),
            "no bodies": Variant(1, {"TAPGATE_REQUEST_LOG_BODIES": "off"}),
            "with bodies": Variant(1, {"TAPGATE_REQUEST_LOG_BODIES": "on"}),
        },
        options,
    )


if __name__ == "__main__":
    main()
