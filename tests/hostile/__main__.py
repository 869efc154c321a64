"""Tries hostile cases: ``python -m tests.hostile --cases 5000``."""

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.hostile.campaign import Campaign


def main() -> int:
    """Try cases, print those that went wrong and those that cost too much, and return 1 if there are any of the first kind."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--keep", type=Path, help="a folder for the files of cases that went wrong")
    parser.add_argument("--costly", type=Path, help="a file to append cases to that cost too much")
    options = parser.parse_args()
    codes: dict[str, Counter[int]] = {}
    wrong = costly = rss_kib = 0
    cpu_s, began_s = 0.0, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="harrow-hostile-") as place:
        campaign = Campaign(Path(place), keep=options.keep)
        for number in range(options.first, options.first + options.cases):
            kind, outcome = campaign.tried(number)
            codes.setdefault(kind, Counter())[outcome.code] += 1
            rss_kib, cpu_s = max(rss_kib, outcome.rss_kib), max(cpu_s, outcome.cpu_s)
            for fault in outcome.faults:
                _tell(f"{number} {kind} {outcome.words!a}: {fault}")
            wrong += bool(outcome.faults)
            if outcome.is_costly:
                costly += 1
                cost = f"{number} {kind} {outcome.words!a}: {outcome.cpu_s:.1f} CPU s, {outcome.rss_kib >> 10} MiB"
                _tell(cost)
                if options.costly:
                    with options.costly.open("a", encoding="utf-8") as stream:
                        stream.write(f"{cost}\n")
    for kind, ended in codes.items():
        _tell(f"{kind}: {', '.join(f'{count} with {code}' for code, count in sorted(ended.items()))}")
    _tell(f"at most {cpu_s:.1f} CPU s and {rss_kib >> 10} MiB in a process")
    took_s = time.monotonic() - began_s
    _tell(f"{options.cases} cases in {took_s:.0f} s: {wrong} went wrong, {costly} cost too much")
    return int(wrong > 0)


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
