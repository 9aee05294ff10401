#!/usr/bin/env bash
# Puts a real Triton server with its python backend into .tools/triton, to hold tests/clients against. It comes out of
# the nvidia-pytriton package, which carries the binaries. Does nothing when it is already there as asked for.
set -euo pipefail
cd "$(dirname "$0")/../.."

wheel=nvidia-pytriton==0.7.0
requirements=tests/clients/requirements-triton.txt
home=.tools/triton
stamp=$home/installed.txt
python=.tools/venv/bin/python

tools/setup/clients.sh
version=$("$python" -c 'import sys; print("{}.{}".format(*sys.version_info))')
wanted=$(echo "Python $version"; cat tools/setup/triton.sh "$requirements")
[[ -f $stamp && $(<"$stamp") == "$wanted" ]] && exit 0

# The stub embeds Python, and NumPy 1 ends with 3.12.
case $version in
3.9 | 3.10 | 3.11 | 3.12) ;;
*) echo "Triton's python backend needs Python 3.9 to 3.12, this is $version: run again with PYTHON=python3.11" >&2; exit 2 ;;
esac

echo "Installing Triton into $home, once"
rm -rf "$home"
"$python" -m venv "$home/venv"
pip=("$home/venv/bin/pip" --quiet --disable-pip-version-check)
"${pip[@]}" install --requirement "$requirements"
"${pip[@]}" download --no-deps --dest "$home" "$wheel"
"$python" -m zipfile --extract "$home"/*.whl "$home"
rm "$home"/*.whl

triton=$home/pytriton/tritonserver
cp "$triton/python_backend_stubs/$version/triton_python_backend_stub" "$triton/backends/python/"
chmod +x "$triton/bin/tritonserver" "$triton/backends/python/triton_python_backend_stub"
echo "$wanted" >"$stamp"
