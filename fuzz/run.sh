#!/usr/bin/env bash
# Builds every fuzz target, then runs each for a bounded time: `fuzz/run.sh [SECONDS]`, 20 unless told.
# The toolchain is stable: coverage works without a sanitizer, and the rooms have no unsafe code to sanitize.
# What crashed stays in fuzz/artifacts; the smallest input that shows it belongs into a test.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-20}

cargo fuzz build --sanitizer none
for target in $(cargo fuzz list); do
    mkdir -p "fuzz/corpus/$target"
    options=(-max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1)
    [ -f "fuzz/dictionaries/$target.dict" ] && options+=(-dict="fuzz/dictionaries/$target.dict")
    echo "fuzzing $target for $seconds s"
    # Without libFuzzer's asides, and the list of words it made up on the way.
    cargo fuzz run --sanitizer none "$target" -- "${options[@]}" 2>&1 |
        sed -e '/^###### Recommended dictionary/,/^###### End of recommended/d' \
            -e '/^WARNING: Failed to find function/d' -e '/NEW_FUNC/d'
done
