#!/usr/bin/env python3
"""Names the type of files, by asking a server that serves the model `magika`.

    demo/identify.py README.md /usr/bin/env photo.jpg
    demo/identify.py --url somewhere:8000 *

The model looks at the beginning and the end of a file. What it is given and how its answer is read is what the `magika`
package does, by the same configuration, which set-up put into .tools/magika.
"""

import argparse
import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FACTS = ROOT / ".tools" / "magika"
VENV_PYTHON = ROOT / ".tools" / "demo-client" / "bin" / "python3"

# A request is run whole and within the objective of demo/models/magika/config.pbtxt: on a slow machine too, few rows are.
ROWS_PER_REQUEST = 4

try:
    import numpy
    import tritonclient.http
    from tritonclient.utils import InferenceServerException
except ImportError as missing:
    # `make demo-client` puts the client into an environment of its own; use it without being told.
    if VENV_PYTHON.exists() and Path(sys.prefix) != VENV_PYTHON.parents[1]:
        os.execv(VENV_PYTHON, [str(VENV_PYTHON), *sys.argv])
    sys.exit(f"Triton's client for Python is missing ({missing}); run `make demo-client` once, and try again")


def main():
    parser = argparse.ArgumentParser(description="Names the type of files, by asking a server.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--url", default="localhost:8000", help="the server's HTTP address (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON object per file")
    arguments = parser.parse_args()

    identifier = Identifier()
    answers = [identifier.without_model(file) for file in arguments.files]
    asked = [index for index, answer in enumerate(answers) if isinstance(answer, list)]
    try:
        with tritonclient.http.InferenceServerClient(arguments.url) as client:
            for start in range(0, len(asked), ROWS_PER_REQUEST):
                rows = asked[start:start + ROWS_PER_REQUEST]
                for index, scores in zip(rows, ask(client, [answers[index] for index in rows])):
                    answers[index] = identifier.with_scores(scores)
    except OSError as error:
        sys.exit(f"{arguments.url} does not answer ({error}); start a server with `make demo`")
    except InferenceServerException as error:
        sys.exit(f"{arguments.url} refuses: {error}")

    width = max(len(str(file)) for file in arguments.files)
    for file, (label, score) in zip(arguments.files, answers):
        description = identifier.description(label)
        if arguments.json:
            print(json.dumps({"file": str(file), "label": label, "description": description, "score": score}))
        else:
            print(f"{str(file):{width}}  {label:12}  {description}" + ("" if score is None else f"  ({score:.0%})"))


def ask(client, rows):
    """The model's scores for each row."""
    tensor = tritonclient.http.InferInput("bytes", [len(rows), len(rows[0])], "INT32")
    tensor.set_data_from_numpy(numpy.array(rows, dtype=numpy.int32))
    return client.infer("magika", [tensor]).as_numpy("target_label")


class Identifier:
    def __init__(self):
        try:
            self.model = json.loads((FACTS / "config.min.json").read_text())
            self.types = json.loads((FACTS / "content_types_kb.min.json").read_text())
        except OSError:
            sys.exit("what the model's classes mean is not there; run `make setup-runtime` once, and try again")

    def description(self, label):
        return self.types.get(label, {}).get("description") or label

    def without_model(self, file):
        """The answer for files that need no model; else the row of numbers to ask the model about."""
        if file.is_dir():
            return "directory", None
        try:
            size = file.stat().st_size
            if not file.is_file():
                return "unknown", None
            with open(file, "rb") as stream:
                block = min(self.model["block_size"], size)
                beginning = stream.read(block)
                stream.seek(size - block)
                end = stream.read(block)
        except OSError as error:
            sys.exit(f"{file}: {error.strerror}")
        if size == 0:
            return "empty", None
        row = self.features(beginning, end)
        few = self.model["min_file_size_for_dl"]
        if size < few or row[few - 1] == self.model["padding_token"]:
            return ("txt" if is_utf8(beginning) else "unknown"), None
        return row

    def features(self, beginning, end):
        """The first bytes that are not white space, and the last ones, each filled up to its length."""
        padding = self.model["padding_token"]
        first = list(beginning.lstrip()[:self.model["beg_size"]])
        last = list(end.rstrip()[-self.model["end_size"]:])
        return (first + [padding] * (self.model["beg_size"] - len(first))
                + [padding] * (self.model["end_size"] - len(last)) + last)

    def with_scores(self, scores):
        """The label that the model's scores stand for: a general one where the model is not sure enough."""
        best = int(scores.argmax())
        score = float(scores[best])
        guess = self.model["target_labels_space"][best]
        label = self.model["overwrite_map"].get(guess, guess)
        if score < self.model["thresholds"].get(guess, self.model["medium_confidence_threshold"]):
            label = "txt" if self.types[label]["is_text"] else "unknown"
        return label, score


def is_utf8(content):
    try:
        content.decode("utf-8")
        return True
    except UnicodeDecodeError:
        return False


if __name__ == "__main__":
    main()
