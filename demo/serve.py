#!/usr/bin/env python3
"""Serves the demo's model and says what to try. Ctrl-C stops it."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

from identify import ROOT, Identifier

DOWNBEAT = ROOT / "target" / "release" / "downbeat"
REPOSITORY = ROOT / ".tools" / "demo-repository"
REQUEST = ROOT / "out" / "request.json"


def main():
    port = int(os.environ.get("DOWNBEAT_HTTP_PORT", "8000"))
    write_request()
    server = subprocess.Popen([DOWNBEAT, "serve", f"--model-repository={REPOSITORY}", "--drain-s=0"])
    # Ctrl-C reaches the server too, which then stops in its own time.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: server.terminate())
    if wait_until_ready(server, port):
        say_what_to_try(port)
    sys.exit(server.wait())


def write_request():
    """A request about README.md, as curl can send it."""
    REQUEST.parent.mkdir(exist_ok=True)
    row = Identifier().without_model(ROOT / "README.md")
    tensor = {"name": "bytes", "datatype": "INT32", "shape": [1, len(row)], "data": row}
    wanted = [{"name": "target_label", "parameters": {"classification": 3}}]
    REQUEST.write_text(json.dumps({"inputs": [tensor], "outputs": wanted}))


def wait_until_ready(server, port):
    while server.poll() is None:
        try:
            with urllib.request.urlopen(f"http://localhost:{port}/v2/health/ready", timeout=1):
                return True
        except (OSError, urllib.error.HTTPError):
            time.sleep(0.1)
    return False


def say_what_to_try(port):
    url = f"localhost:{port}"
    print(f"""
A model that tells the type of a file is served. In another terminal:

  curl {url}/v2/models/magika/infer -d @out/request.json       # the three most likely types of README.md
  demo/identify.py {"" if port == 8000 else f"--url {url} "}README.md Makefile {DOWNBEAT.relative_to(ROOT)}  # the same with Triton's client, and names
  curl localhost:8002/metrics                                  # for Prometheus

Ctrl-C stops the server.
""", flush=True)


if __name__ == "__main__":
    main()
