"""Build the page again and compare it with the one in the package; `make check` runs this.

Without Node the comparison is left out, with a sentence; with CI=1 that is a failure.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

WEB = Path(__file__).parent
SHIPPED = WEB.parent / "src" / "pellucid" / "page" / "page.html"


def main() -> int:
    """Return the exit code."""
    if shutil.which("npm") is None:
        print(
            "The page was not compared: Node is missing. Install Node 18 or newer, then: make check"
        )
        return 1 if os.environ.get("CI") else 0
    # The Makefile knows when the libraries must be installed again.
    subprocess.run(["make", "--silent", "web/node_modules/.installed"], cwd=WEB.parent, check=True)
    subprocess.run(["npm", "run", "--silent", "check"], cwd=WEB, check=True)
    subprocess.run(["npm", "run", "--silent", "test"], cwd=WEB, check=True)
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PELLUCID_PAGE_OUT": folder}
        build = ["npm", "run", "--silent", "build", "--", "--logLevel", "error"]
        subprocess.run(build, cwd=WEB, env=environment, check=True)
        if (Path(folder) / "page.html").read_bytes() == SHIPPED.read_bytes():
            return 0
    print(f"{SHIPPED.name} must be what web/ builds, but differs. Build it: make web")
    return 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
