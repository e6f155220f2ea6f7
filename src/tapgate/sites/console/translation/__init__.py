"""Languages of the console. See `docs/console.md` for how texts are translated."""
