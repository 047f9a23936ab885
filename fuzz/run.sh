#!/usr/bin/env bash
# Builds fuzz targets, then runs each for a limited time: `fuzz/run.sh [SECONDS [TARGET…]]`; all for 20 s by default.
# The stable toolchain is enough: coverage needs no sanitizer, and the fuzzed crates have no unsafe code.
# Crashing inputs are saved in fuzz/artifacts; add a minimised input to a test.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-20}
targets=("${@:2}")

# The fuzzer detects failures by assertions and overflow checks.
export CARGO_PROFILE_RELEASE_DEBUG=line-tables-only
export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true
export CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true

if [ ${#targets[@]} -eq 0 ]; then
    cargo fuzz build --sanitizer none
    mapfile -t targets < <(cargo fuzz list)
fi
for target in "${targets[@]}"; do
    mkdir -p "fuzz/corpus/$target"
    options=(-max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1)
    [ -f "fuzz/dictionaries/$target.dict" ] && options+=(-dict="fuzz/dictionaries/$target.dict")
    echo "fuzzing $target for $seconds s"
    # Without warnings of libFuzzer and its recommended dictionary.
    cargo fuzz run --sanitizer none "$target" -- "${options[@]}" 2>&1 |
        sed -e '/^###### Recommended dictionary/,/^###### End of recommended/d' \
            -e '/^WARNING: Failed to find function/d' -e '/NEW_FUNC/d'
done
