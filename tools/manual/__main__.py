"""Write docs/api and docs/access.md, and print the names of changed files."""

from pathlib import Path

from tools.manual.access import write_access_page
from tools.manual.pages import write_pages

if __name__ == "__main__":
    docs = Path("docs")
    for file in (*write_pages(docs / "api"), *write_access_page(docs / "access.md")):
        print(f"changed {file}")
