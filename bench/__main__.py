"""`python -m bench [NAME ...]`: measures and prints ratios.

Nothing here asserts a time; the exit code is 0 unless a measurement itself failed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator

from bench import compile_time, kernels, scaling, startup
from bench.report import Row, heading, show

SUITES: dict[str, Callable[[], Iterator[Row]]] = {
    "kernels": kernels.measure,
    "compile": compile_time.measure,
    "scaling": scaling.measure,
    "startup": startup.measure,
}


def main() -> int:
    """Run the suites that were named, or all."""
    parser = argparse.ArgumentParser(prog="nox -s bench --", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SUITES)}")
    names = parser.parse_args().names or list(SUITES)
    unknown = [name for name in names if name not in SUITES]
    if unknown:
        parser.error(f"no suite is called {unknown[0]!r}; there are {', '.join(SUITES)}")
    missed = 0
    print(heading())
    for name in names:
        for row in SUITES[name]():
            missed += not row.is_met
            print(show(row), flush=True)
    print(f"{missed} of the targets above were missed" if missed else "all targets were met")
    return 0


if __name__ == "__main__":
    sys.exit(main())
