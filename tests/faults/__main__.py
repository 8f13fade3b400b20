"""The command line: `python -m tests.faults [--seed N] [--count N] [--times N] [--arenas N] [--mutant NAME]`."""

import argparse
import sys
import tempfile
from pathlib import Path

from app.clock import monotonic
from tests.faults.draw import draw
from tests.faults.fleet import Fleet
from tests.faults.mutants import MUTANTS
from tests.faults.script import Report, Schedule


def main() -> int:
    """Perform schedules of consecutive seeds, print progress and failures, and return how many failed (at most 99)."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--count", type=int, default=1, help="how many seeds, from that one on")
    parser.add_argument("--times", type=int, default=1, help="how often each")
    parser.add_argument("--arenas", type=int, default=4, help="how many schedules are performed at once")
    parser.add_argument("--mutant", choices=MUTANTS, default="", help="a fault to put into the product")
    given = parser.parse_args()
    seeds = range(given.seed, given.seed + given.count)
    mutated = {"mutant": given.mutant}
    schedules = [draw(seed).model_copy(update=mutated) for seed in seeds for _ in range(given.times)]
    started, done, failed = monotonic(), 0, list[int]()

    def on_report(schedule: Schedule, report: Report) -> None:
        nonlocal done
        done += 1
        if report.violations:
            failed.append(report.seed)
            say(f"\nseed {report.seed} failed:\n  " + "\n  ".join(report.violations))
            say(
                f"{schedule.model_dump_json(exclude_defaults=True)}\n{report.model_dump_json(exclude={'log'})}\n{report.log}"
            )
        if done % 50 == 0:
            say(f"{done} of {len(schedules)} in {monotonic() - started:.0f} s, {len(failed)} failed")

    with tempfile.TemporaryDirectory(prefix="faults-") as folder, Fleet(Path(folder), given.arenas) as fleet:
        started = monotonic()
        fleet.perform_all(schedules, on_report)
        took = monotonic() - started
    say(f"{done} schedules in {took:.1f} s, {len(failed)} failed; seeds: {sorted(set(failed)) or 'none'}")
    return min(len(failed), 99)


def say(text: str) -> None:
    """Print a line now."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
