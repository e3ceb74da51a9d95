"""Where this tool keeps what it fetches, and the versions of it.

Nothing that is fetched lies in the clone: everything is below `$CAIRN_CACHE/suites`, and may be deleted at any time.
"""

import os
import pathlib
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CACHE = pathlib.Path(os.environ.get("CAIRN_CACHE") or pathlib.Path.home() / ".cache" / "cairn") / "suites"
# Modules that the processes of foreign suites load.
LOADED = HERE / "loaded"
RESULTS = HERE / "results.json"
PAGE = ROOT / "docs" / "src" / "comparison" / "sql-suites.md"

POSTGRES_VERSION = 15
POSTGRES_BIN = pathlib.Path(os.environ.get("CAIRN_POSTGRES_BIN") or f"/usr/lib/postgresql/{POSTGRES_VERSION}/bin")
# The driver of the harness itself. The suites have environments of their own.
DRIVER = "psycopg[binary]==3.3.9"


def cairn():
    """The command under test: `CAIRN`, or the newest build in `CARGO_TARGET_DIR`."""
    if "CAIRN" in os.environ:
        return pathlib.Path(os.environ["CAIRN"]).resolve()
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    built = [path for path in (target / "debug/cairn", target / "release/cairn") if path.exists()]
    if not built:
        raise SystemExit("suites: there is no `cairn` command: build it, or name it with CAIRN")
    return max(built, key=lambda path: path.stat().st_mtime)


def scratch(name):
    """A new folder that the user `postgres` can read, too."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"cairn-suites-{name}-"))
    folder.chmod(0o755)
    return folder
