"""Run the random tests again and again, each round from another seed, until the time is up.

A round draws twice the examples of `make test`: many seeds for all tests find more than many
examples for those that come first.

    python tests/support/soak.py --minutes 30 [--seed N] [-- more for pytest]

The first failure ends it, with the story that pytest tells and the seed that tells it again.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
# An interrupted round ends its servers and JVMs before it returns.
_LEAVE = 60
_NO_TESTS = 5


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30, help="how long, in all")
    parser.add_argument("--seed", type=int, help="of the first round; drawn where it isn't given")
    parser.add_argument("--jobs", default="2", help="processes at once")
    parser.add_argument("--times", type=int, default=2, help="as many examples as in `make test`")
    parser.add_argument("more", nargs="*", help="for pytest: a folder, a file, -k …")
    options = parser.parse_args(argv)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1, 10**6)
    if seed < 1:
        parser.error("--seed is a whole number from 1")
    until = time.monotonic() + 60 * options.minutes
    rounds = 0
    while (left := until - time.monotonic()) > 0:
        print(f"soak: round {rounds + 1}, SEED={seed}", flush=True)
        status = _round(seed, left, options)
        if status is None:
            break
        if status:
            if status != _NO_TESTS:
                again = " ".join(options.more)
                print(f"soak: failed. Again: make soak SEED={seed} SOAK_ARGS='{again}'")
            return status
        rounds += 1
        seed += 1
    print(f"soak: nothing found in {rounds} whole rounds; the next would be SEED={seed}")
    return 0


def _round(seed: int, seconds: float, options: argparse.Namespace) -> int | None:
    """How pytest ended, or `None` where the time was up before."""
    command = [
        sys.executable, "-m", "pytest", "-n", options.jobs, "--dist", "loadgroup",
        "--max-worker-restart", "0", "-x", "-q", "-m", "soak", f"--hypothesis-seed={seed}",
        # What counts as a hang is longer here: `pytest_collection_modifyitems` says how long.
        "-o", "faulthandler_timeout=0", *options.more,
    ]  # fmt: skip
    env = {**os.environ, "LAKELOG_SEED": str(seed), "LAKELOG_EXAMPLES": str(options.times)}
    with subprocess.Popen(command, cwd=ROOT, env=env) as run:
        try:
            return run.wait(seconds)
        except subprocess.TimeoutExpired:
            run.send_signal(signal.SIGINT)
            try:
                run.wait(_LEAVE)
            except subprocess.TimeoutExpired:
                run.kill()
            return None


if __name__ == "__main__":
    sys.exit(main())
