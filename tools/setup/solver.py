#!/usr/bin/env python3
"""Fetches the solver of integer programs, HiGHS, for `downbeat plan`.

It comes out of the package `highspy` on PyPI, as runtime.py's libraries do: a shared library with HiGHS's C interface,
which is loaded when it is needed. Building HiGHS from source would take minutes, cmake and a C++ compiler.

    .tools/highs/libhighs.so                    the library that the planner loads
"""

from runtime import TOOLS, fetch

SOLVER = "highspy==1.15.1"


def solver_files(paths):
    """The library without its version in the name; of several names for it, one."""
    for path in sorted(paths):
        name = path.rsplit("/", 1)[-1]
        if name.startswith("libhighs.so"):
            return [("libhighs.so", path)]
        if name.startswith("libhighs.") and name.endswith(".dylib"):
            return [("libhighs.dylib", path)]
    return []


if __name__ == "__main__":
    fetch(SOLVER, TOOLS / "highs", solver_files)
