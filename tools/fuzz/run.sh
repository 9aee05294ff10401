#!/usr/bin/env bash
# Lets AFL++ try every target for a while: run.sh SECONDS [TARGET...]
# What breaks a target is left in out/fuzz/TARGET/default/crashes, and the exit status says so.
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=${1:?how many seconds for each target}
shift
tools=$PWD/.tools/afl
if [[ ! -x $tools/bin/cargo-afl ]]; then
    echo "Installing the fuzzer into .tools/afl (some minutes) ..."
    cargo install --quiet --locked --root "$tools" cargo-afl --version 0.18.2
fi
export PATH=$tools/bin:$PATH XDG_DATA_HOME=$tools/share
# Built once for each compiler; a second time it says no.
compiler=$(rustc --version | cut -d' ' -f2)
compgen -G "$tools/share/afl.rs/rustc-$compiler-*" > /dev/null || cargo afl config --build
cargo afl build --quiet --release --locked -p downbeat-fuzz --features afl --target-dir target/fuzz

targets=("$@")
if [[ ${#targets[@]} -eq 0 ]]; then
    mapfile -t targets < <(ls crates/fuzz/corpus)
fi
# Containers and laptops have neither a core pattern nor a governor to AFL's liking.
export AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 AFL_SKIP_CPUFREQ=1 AFL_NO_UI=1 AFL_NO_AFFINITY=1
broken=0
for target in "${targets[@]}"; do
    out=out/fuzz/$target
    mkdir -p "$out"
    echo "$target: $seconds s ..."
    AFL_AUTORESUME=1 cargo afl fuzz -V "$seconds" -i "crates/fuzz/corpus/$target" -o "$out" -- \
        target/fuzz/release/downbeat-fuzz "$target" > "$out/log" 2>&1 || { tail -20 "$out/log"; exit 1; }
    field() { sed -n "s/^$1 *: //p" "$out/default/fuzzer_stats"; }
    echo "  $(field execs_done) runs, $(field corpus_count) inputs that differ, $(field bitmap_cvg) of the edges," \
        "$(field saved_crashes) crashes, $(field saved_hangs) hangs"
    [[ $(field saved_crashes) -eq 0 && $(field saved_hangs) -eq 0 ]] || broken=1
done
if [[ $broken -ne 0 ]]; then
    echo "Inputs that break a target lie in out/fuzz/*/default/{crashes,hangs}." >&2
    exit 1
fi
