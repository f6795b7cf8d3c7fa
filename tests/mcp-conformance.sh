#!/usr/bin/env bash
# MCP's official conformance suite against a node: `tests/mcp-conformance.sh`. By hand: it needs Node.js and the npm registry.
#
# Only scenarios count that ask for what a node declares and need no tool of the suite's own (docs/decisions/mcp.md).
set -euo pipefail
cd "$(dirname "$0")/.."

SUITE=@modelcontextprotocol/conformance@0.2.0-alpha.12
SCENARIOS="server-initialize server-session-lifecycle ping tools-list resources-list prompts-list caching
    sep-2164-resource-not-found
    http-header-validation dns-rebinding-protection input-required-result-unsupported-methods
    input-required-result-ignore-extra-params input-required-result-validate-input"

dir=$(mktemp -d)
node=
trap '[ -z "$node" ] || kill "$node"; wait; rm -rf "$dir"' EXIT

cargo build --quiet --locked -p node
npm install --silent --no-fund --no-audit --prefix "$dir/suite" "$SUITE" >/dev/null
index=$dir/suite/node_modules/@modelcontextprotocol/conformance/dist/index.js
# Node.js before 22 has no `fs.globSync`, which only other commands of the suite use.
node -e 'process.exit(require("fs").globSync ? 0 : 1)' || sed -i 's/globSync as [a-zA-Z]*,//' "$index"

"${CARGO_TARGET_DIR:-target}/debug/clawmeshd" up --no-auth --json --data-dir "$dir/node" --no-socket \
    --tcp 127.0.0.1:0 --http 127.0.0.1:0 --listen 127.0.0.1:0 >"$dir/ready" 2>"$dir/log" &
node=$!
until [ -s "$dir/ready" ]; do kill -0 "$node" || { cat "$dir/log"; exit 1; }; sleep 0.1; done
url=http://$(sed 's/.*"http":"\([^"]*\)".*/\1/' "$dir/ready")

failed=0
for scenario in $SCENARIOS; do
    if command node "$index" server --url "$url/mcp" --scenario "$scenario" >"$dir/out" 2>&1; then
        echo "ok      $scenario"
    else
        echo "FAILED  $scenario"
        sed -n '/Failed Checks/,$p' "$dir/out"
        failed=1
    fi
done
exit $failed
