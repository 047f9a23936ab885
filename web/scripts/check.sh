#!/usr/bin/env bash
# Checks the web interface: types, lints, format, tests, sizes, and that the committed files are those that it builds.
set -euo pipefail
cd "$(dirname "$0")/.."

npm ci --ignore-scripts --no-audit --no-fund --silent
npm run --silent types >/dev/null
npm run --silent check
npm test --silent

# Built twice, the files are the same; the compressed ones contain what they should, whichever version packed them.
committed=$(mktemp -d)
trap 'rm -rf "$committed"' EXIT
cp -r dist "$committed"
npm run --silent build >/dev/null
diff -rq --exclude='*.br' "$committed/dist" dist || { echo "web/dist is not what the sources build: run 'just web-build'"; exit 1; }
node scripts/unpacked.mjs "$committed/dist/assets"
rm -rf dist && cp -r "$committed/dist" dist
npm run --silent budgets
