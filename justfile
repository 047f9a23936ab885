# Every check by name. `just test` while you work, `just test-all` before you hand in; CI runs the latter.

set shell := ["bash", "-euo", "pipefail", "-c"]

# The programs that `just tools` installed come first.
export PATH := justfile_directory() / "target/tools/bin" + ":" + env("PATH")

# The list of recipes.
default:
    @just --list --unsorted

# The gateway with a source of its own: a playing channel within seconds.
demo *arguments:
    cargo run --release -- demo {{ arguments }}

# The quick tests, in under a minute once built.
test *filter:
    cargo nextest run --workspace {{ filter }}

# Everything that CI checks, cheapest first.
test-all: have-tools fmt lint deny test-doc test-slow doc bench-build fuzz
    @echo "CI is green"

# Formatting and spelling.
fmt:
    cargo fmt --all --check
    cargo fmt --manifest-path fuzz/Cargo.toml --check
    typos

# Lints, and dependencies that nobody uses.
lint:
    cargo clippy --workspace --all-targets --locked -- -D warnings
    cargo shear

# Licences, duplicate and banned crates, where crates come from.
deny:
    cargo deny --offline --workspace check --hide-inclusion-graph bans licenses sources

# Known vulnerabilities; needs a network that reaches the advisory database.
advisories:
    cargo deny check advisories

# All tests, those with other programs included.
test-slow:
    cargo nextest run --workspace --locked --profile all

# The examples in the documentation comments.
test-doc:
    cargo test --workspace --locked --doc --quiet

# The documentation of the code without a warning; private items too, so links to them are no fault.
doc:
    RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" cargo doc --workspace --locked --no-deps --document-private-items --quiet

# Benches are built, so that they cannot rot; `just bench` measures.
bench-build:
    cargo bench --package headwater --package storage --bench '*' --locked --no-run

# One bench, or all of them.
bench *names:
    cargo bench --package headwater --package storage {{ if names == "" { "" } else { "--bench " + replace(names, " ", " --bench ") } }}

# Builds every fuzz target and runs each for some seconds.
fuzz seconds="20":
    bash fuzz/run.sh {{ seconds }}

# Writes docs/openapi.json, after the interface has changed.
openapi:
    HEADWATER_WRITE_OPENAPI=1 cargo test --package headwater --lib --quiet published_openapi

# Installs what the checks need: Debian packages, and programs under target/tools.
tools:
    bash .ci/tools

[private]
have-tools:
    @for program in ffmpeg ffprobe tshark tsreport chromium chromedriver curl c++ cargo-nextest cargo-deny cargo-shear cargo-fuzz openapi-spec-validator typos; do \
        command -v "$program" >/dev/null || { echo "missing: $program; 'just tools' installs it"; exit 1; }; \
    done
