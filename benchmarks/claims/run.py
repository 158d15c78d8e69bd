"""The texts' claims at full length: three seeds, all sizes, 95 % intervals.

    python benchmarks/claims/run.py memory order      # these
    python benchmarks/claims/run.py --all             # every claim, hours
    python benchmarks/claims/run.py --all --timed     # only those that measure times: idle machine

Each runs ``pellucid claim CLAIM --full``. Finished parts are in
``benchmarks/results/claims/CLAIM.json``, each with its date and machine, and are not run again: an
interrupted run continues. Delete a file to measure again. `page.py` makes pictures and a page.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from pellucid.lessons.why.known_claims import CLAIMS

RESULTS = Path(__file__).parents[1] / "results" / "claims"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("claims", nargs="*", choices=[[], *CLAIMS], metavar="CLAIM")
    parser.add_argument("--all", action="store_true")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--timed", action="store_true", help="of --all only those that measure times")
    kind.add_argument("--untimed", action="store_true", help="of --all only the others")
    parser.add_argument("--threads", default="1", help="1 by default: the models are tiny")
    options = parser.parse_args()
    chosen = options.claims
    if options.all:
        chosen = [
            name for name, claim in CLAIMS.items()
            if not (options.timed and not claim.is_timed)
            and not (options.untimed and claim.is_timed)
        ]  # fmt: skip
    if not chosen:
        parser.error("name claims, or --all")
    failed = []
    for name in chosen:
        print(f"== {name}", flush=True)
        command = [
            sys.executable, "-m", "pellucid", "claim", name, "--full", "-o", f"{RESULTS}/",
            "--threads", options.threads,
        ]  # fmt: skip
        if subprocess.run(command).returncode:
            failed.append(name)
    if failed:
        print(f"These failed: {', '.join(failed)}.", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
