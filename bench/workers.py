"""Payment benchmark on nodes with one and several workers, which share one ledger writer.

python -m bench.workers
"""

from bench.comparison import Variant, build_parser, compare


def main() -> None:
    parser = build_parser("python -m bench.workers", __doc__)
    parser.add_argument("--workers", type=int, default=3, help="workers of the second node")
    options = parser.parse_args()
    names = ("1 worker", f"{options.workers} workers")
    compare({names[0]: Variant(1), names[1]: Variant(options.workers)}, options)


if __name__ == "__main__":
    main()
