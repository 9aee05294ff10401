#!/usr/bin/env bash
# Makes .tools/venv, the Python environment of tests/clients. Does nothing when it is already there as asked for.
set -euo pipefail
cd "$(dirname "$0")/../.."

requirements=tests/clients/requirements.txt
venv=.tools/venv
stamp=$venv/installed-requirements.txt

cmp --silent "$requirements" "$stamp" && exit 0

echo "Installing the clients' Python packages into $venv, once"
"${PYTHON:-python3}" -m venv --clear "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$requirements"
cp "$requirements" "$stamp"
