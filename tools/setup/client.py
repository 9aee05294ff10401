#!/usr/bin/env python3
"""Installs Triton's client for Python into .tools/demo-client, for the demo."""

import subprocess
import sys
import venv
from pathlib import Path

PACKAGES = ["tritonclient[all]==2.73.0"]

VENV = Path(__file__).resolve().parents[2] / ".tools" / "demo-client"


def main():
    stamp = VENV / "packages"
    wanted = "\n".join(PACKAGES)
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    print(f"Installing {', '.join(PACKAGES)} into .tools/demo-client, once", flush=True)
    try:
        venv.create(VENV, with_pip=True)
    except (subprocess.CalledProcessError, SystemExit):
        sys.exit("set-up: this Python cannot make virtual environments: install python3-venv")
    pip = [VENV / "bin" / "python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    result = subprocess.run([*pip, *PACKAGES], stderr=subprocess.PIPE, text=True)
    if result.returncode != 0:
        reasons = [line for line in result.stderr.splitlines() if line.startswith("ERROR")] or ["pip gave no reason"]
        sys.exit(f"set-up: cannot install {', '.join(PACKAGES)} ({reasons[-1]})\n"
                 "Connect to the network, or name a mirror in PIP_INDEX_URL, and run this again.")
    stamp.write_text(wanted)


if __name__ == "__main__":
    main()
