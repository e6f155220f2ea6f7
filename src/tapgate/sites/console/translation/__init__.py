"""Console languages. See `docs/console.md` for how texts are translated."""
