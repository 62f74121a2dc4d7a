#!/usr/bin/env bash
# tinyduration 3.4.1 reads a repeating interval of ISO 8601 as one of its durations, and says nothing about the rest.
#
# `limits.interval` of Open Payments is such an interval: `R12/2026-01-01T00:00:00Z/P1M` is twelve months from a start.
# The parser for durations neither refuses it nor returns the repetitions and the start: its result equals that of `P1M`.
# Whoever reads an interval with it must split the text at its slashes first.
#
# Seen:
#   P1M                           {"months":1}
#   R12/P1M                       {"months":1}
#   R12/2026-01-01T00:00:00Z/P1M  {"months":1}
set -euo pipefail
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
cd "$home"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts tinyduration@3.4.1
cat >check.mjs <<'JS'
import assert from 'node:assert/strict'
import { parse } from 'tinyduration'

for (const text of ['P1M', 'R12/P1M', 'R12/2026-01-01T00:00:00Z/P1M']) {
  console.log(text.padEnd(29), JSON.stringify(parse(text)))
  assert.deepEqual(parse(text), { months: 1 })
}
JS
node check.mjs
