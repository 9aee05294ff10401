"""A server and all processes that it started."""

import os
from collections import Counter
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def family(root: int) -> list[int]:
    """A process and its descendants."""
    children: dict[int, list[int]] = {}
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and (stat := read(process / "stat")):
            # The name, in parentheses, may hold anything.
            parent = int(stat.rsplit(")", 1)[1].split()[1])
            children.setdefault(parent, []).append(int(process.name))
    members, rest = [], [root]
    while rest:
        members.append(rest.pop())
        rest += children.get(members[-1], [])
    return members


def cpu_seconds(root: int) -> Counter:
    """Seconds by process and thread name, of a process and its descendants."""
    spent: Counter = Counter()
    for pid in family(root):
        name = (read(Path(f"/proc/{pid}/comm")) or "?").strip()
        for task in Path(f"/proc/{pid}/task").glob("*"):
            if stat := read(task / "stat"):
                before, _, after = stat.rpartition(")")
                fields = after.split()
                spent[f"{name}/{before.partition('(')[2]}"] += (int(fields[11]) + int(fields[12])) / TICKS
    return spent


def read(file: Path) -> str | None:
    """Its text; nothing where the process has just ended."""
    try:
        return file.read_text()
    except OSError:
        return None
