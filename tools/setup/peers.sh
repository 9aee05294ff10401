#!/usr/bin/env bash
# Puts other model servers, each in a virtual environment of its own, into .tools/peers, for bench/peers. Does nothing
# where they are already there as asked for. Names of servers may be given: ray, litserve.
set -euo pipefail
cd "$(dirname "$0")/../.."

declare -A packages=([ray]="ray[serve]==2.60.0" [litserve]="litserve==0.2.19")

for name in "$@"; do
  package=${packages[$name]:?there is no server "$name"}
  home=.tools/peers/$name
  stamp=$home/installed.txt
  [[ -f $stamp && $(<"$stamp") == "$package" ]] && continue
  echo "Installing $package into $home, once"
  "${PYTHON:-python3}" -m venv --clear "$home"
  "$home/bin/pip" install --quiet --disable-pip-version-check "$package"
  echo "$package" >"$stamp"
done
