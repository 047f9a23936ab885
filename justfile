# All checks. Run `just test` while you work and `just test-all` before you submit; CI runs the latter.

set shell := ["bash", "-euo", "pipefail", "-c"]

# Prefers the programs that `just tools` installed.
export PATH := justfile_directory() / "target/tools/bin" + ":" + env("PATH")

# The list of recipes.
default:
    @just --list --unsorted

# Starts the gateway with a built-in source: a channel plays within seconds.
demo *arguments:
    cargo run --release -- demo {{ arguments }}

# Runs the quick tests, in under a minute once built.
test *filter:
    cargo nextest run --workspace {{ filter }}

# Runs the tests whose name contains this text: slow ones and those of `test-night` too, in any crate.
one name *arguments:
    cargo nextest run --workspace --profile all --ignore-default-filter {{ arguments }} -E 'test({{ name }})'

# Runs everything that CI checks, cheapest first, and prints the duration of each step.
test-all: have-tools
    #!/usr/bin/env bash
    set -euo pipefail
    durations=""
    for step in fmt deny web lint test-slow weight doc; do
        before=$SECONDS
        {{ just_executable() }} --justfile {{ justfile() }} "$step"
        durations+=$(printf '\n%6d s  %s' $((SECONDS - before)) "$step")
        echo "step $step took $((SECONDS - before)) s"
    done
    echo "durations:$durations"
    echo "CI is green after $((SECONDS / 60)) min $((SECONDS % 60)) s"

# Checks formatting and spelling.
fmt:
    cargo fmt --all --check
    typos

# Checks lints of all targets, benches and fuzz targets included, and unused dependencies.
lint:
    cargo clippy --workspace --all-targets --locked -- -D warnings
    cargo shear

# Checks licences, duplicate and banned crates, and the sources of crates.
deny:
    cargo deny --offline --workspace check --hide-inclusion-graph bans licenses sources

# Checks for known vulnerabilities; needs access to the advisory database.
advisories:
    cargo deny check advisories

# Runs all tests but those of `test-night`: slow ones and those with external programs, too. Doc comments contain no examples to test.
# Three tests for each core: most of them wait for sockets and timers for much of their time. Tests of properties have the same
# cases each time, so that CI fails for what was changed; `just test` draws new ones.
test-slow:
    PROPTEST_RNG_SEED="${PROPTEST_RNG_SEED:-1}" cargo nextest run --workspace --locked --profile all --test-threads $(( 3 * $(nproc) ))
    .ci/slowest all

# Runs what takes long by nature: several nodes that are lost, rounds of failures, a million records, a day of virtual time, every
# input to the published interface. Before a release, and before a change of what it covers is finished. A part such as 1/3 takes
# a third of the time.
test-night part="1/1": have-tools
    cargo nextest run --workspace --locked --profile night --partition "count:{{ part }}"
    .ci/slowest night

# Prints how much machine code the program has that `test-slow` built, and what is made most often; fails beyond .ci/weight.txt.
weight:
    .ci/weight

# Checks and builds the web interface, and checks that web/dist is what the sources build.
web: have-tools
    bash web/scripts/check.sh

# Builds the web interface into web/dist.
web-build:
    cd web && npm ci --no-audit --no-fund --silent && npm run types && npm run build

# Saves the picture of the README from the demo.
picture:
    HEADWATER_PICTURE={{ justfile_directory() }}/docs/now.png cargo nextest run --profile night --test it now_shows_the_channels_of_the_demo

# Builds the code documentation without warnings, private items included.
doc:
    RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" cargo doc --workspace --locked --no-deps --document-private-items --quiet

# Runs one bench, or all of them, in the release profile.
bench *names:
    cargo bench --package headwater --package storage {{ if names == "" { "" } else { "--bench " + replace(names, " ", " --bench ") } }}

# Builds every fuzz target with optimisation and runs each for this many seconds.
fuzz seconds="20":
    bash fuzz/run.sh {{ seconds }}

# Runs this many rounds of failures with five nodes and three NATS servers, half a minute each.
cluster-rounds rounds="100" seed="1":
    HEADWATER_ROUNDS={{ rounds }} HEADWATER_SEED={{ seed }} cargo nextest run --workspace --profile night --no-capture -E 'test(cluster_rounds::)'

# Replaces three nodes of a cluster one after another while viewers play: from a revision to the present state, or else all with
# the present state. HEADWATER_OLD and HEADWATER_NEW name other programs.
upgrade-test revision="":
    #!/usr/bin/env bash
    set -euo pipefail
    if [ -n "{{ revision }}" ]; then
        source=target/upgrade-source
        rm -rf "$source" && mkdir -p "$source"
        git archive "{{ revision }}" | tar -x -C "$source"
        CARGO_TARGET_DIR=$PWD/target/upgrade-target cargo build --locked --manifest-path "$source/Cargo.toml" --bin headwater
        export HEADWATER_OLD=$PWD/target/upgrade-target/debug/headwater
    fi
    cargo nextest run --workspace --locked --profile night --no-capture -E 'test(cluster_upgrade::)'

# Writes docs/openapi.json after a change of the API.
openapi:
    HEADWATER_WRITE_OPENAPI=1 cargo test --package rest --lib --quiet published_openapi

# Builds the files of a release into target/release-files: archive, Debian package, bill of materials, checksums.
release *targets:
    bash .ci/release {{ targets }}

# Installs the tools of the checks: Debian packages, and programs under target/tools.
tools:
    bash .ci/tools

[private]
have-tools:
    @for program in ffmpeg ffprobe nginx caddy tshark tsreport tv_sort xmllint chromedriver chromium-headless-shell curl c++ cargo-nextest cargo-deny cargo-shear cargo-fuzz openapi-spec-validator typos; do \
        command -v "$program" >/dev/null || { echo "missing: $program; 'just tools' installs it"; exit 1; }; \
    done
