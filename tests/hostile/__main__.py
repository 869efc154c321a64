"""Runs hostile cases: ``python -m tests.hostile --cases 5000``."""

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.hostile.campaign import Campaign


def main() -> int:
    """Run cases, print failed and costly ones, and return 1 if any failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--keep", type=Path, help="a folder for the files of failed cases")
    parser.add_argument("--costly", type=Path, help="append costly cases to this file")
    options = parser.parse_args()
    codes: dict[str, Counter[int]] = {}
    failed = costly = rss_kib = 0
    cpu_s, start_s = 0.0, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="harrow-hostile-") as place:
        campaign = Campaign(Path(place), keep=options.keep)
        for number in range(options.first, options.first + options.cases):
            kind, outcome = campaign.run(number)
            codes.setdefault(kind, Counter())[outcome.code] += 1
            rss_kib, cpu_s = max(rss_kib, outcome.rss_kib), max(cpu_s, outcome.cpu_s)
            for fault in outcome.faults:
                _print(f"{number} {kind} {outcome.words!a}: {fault}")
            failed += bool(outcome.faults)
            if outcome.is_costly:
                costly += 1
                cost = f"{number} {kind} {outcome.words!a}: {outcome.cpu_s:.1f} CPU s, {outcome.rss_kib >> 10} MiB"
                _print(cost)
                if options.costly:
                    with options.costly.open("a", encoding="utf-8") as stream:
                        stream.write(f"{cost}\n")
    for kind, counts in codes.items():
        _print(f"{kind}: {', '.join(f'{count} with {code}' for code, count in sorted(counts.items()))}")
    _print(f"at most {cpu_s:.1f} CPU s and {rss_kib >> 10} MiB in a process")
    took_s = time.monotonic() - start_s
    _print(f"{options.cases} cases in {took_s:.0f} s: {failed} failed, {costly} cost too much")
    return int(failed > 0)


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
