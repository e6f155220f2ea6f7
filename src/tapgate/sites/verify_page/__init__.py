"""Public page that checks an inclusion proof in the browser."""
