"""Write all files generated from the API's declarations, and print the names of changed files."""

from pathlib import Path

from tools.manual.access import write_access_page
from tools.manual.pages import write_pages
from tools.manual.parts import write_parts
from tools.manual.postman import write_postman_collection
from tools.manual.retention import write_retention_page
from tools.manual.settings import write_settings
from tools.manual.typescript import write_typescript_client
from tools.manual.version import write_version

if __name__ == "__main__":
    docs = Path("docs")
    changed = (
        *write_version(Path()),
        *write_pages(docs / "api"),
        *write_settings(Path()),
        *write_access_page(docs / "access.md"),
        *write_parts(docs / "pictures" / "parts.svg"),
        *write_retention_page(docs / "retention.md"),
        *write_postman_collection(docs / "postman" / "tapgate.postman_collection.json"),
        *write_typescript_client(Path("clients/typescript/src")),
    )
    for file in changed:
        print(f"changed {file}")
