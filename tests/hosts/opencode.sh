#!/usr/bin/env bash
# opencode for real, with a stub in place of its model: `tests/hosts/opencode.sh`. By hand: it needs npm and its registry.
#
# A session of an opencode that serves ends a turn and is idle. An agent at another node asks its agent: the plugin that
# `clawmesh attach opencode` writes begins a turn in the session, whose model reads the inbox and answers.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/hosts/lib.sh

need npm
need node
need curl
[ -n "${BUILT:-}" ] || cargo build --quiet --locked -p node -p cli
package opencode-ai@1.18.33
opencode=$package/../.bin/opencode
home=$dir/home
project=$dir/project
mkdir -p "$home/.config/opencode" "$project"
root=$PWD
# One process, also in the background.
run() { exec env --chdir="$project" -u XDG_CONFIG_HOME OPENCODE_DISABLE_MODELS_FETCH=1 HOME="$home" PATH="$root/$target:$PATH" "$@"; }

model_up
cat >"$home/.config/opencode/opencode.json" <<JSON
{ // of its user
  "\$schema": "https://opencode.ai/config.json",
  "model": "stub/stub", "small_model": "stub/stub", "autoupdate": false, "share": "disabled",
  "provider": { "stub": { "npm": "@ai-sdk/openai-compatible", "name": "stub", "options": { "baseURL": "$model/v1", "apiKey": "none" },
    "models": { "stub": { "name": "stub", "tool_call": true } } } },
}
JSON
cp "$home/.config/opencode/opencode.json" "$dir/before"

echo "== nodes"
node_up alpha
node_up beta --join "$(ticket alpha)"

echo "== attach"
(run "$root/$target/clawmesh" attach opencode --yes --agent-id code --data-dir "$dir/beta" --key-file "$dir/beta.key") | grep -v '^[+]'

echo "== opencode ($(run "$opencode" --version))"
port=$((20000 + RANDOM % 20000))
run "$opencode" serve --port "$port" --hostname 127.0.0.1 --print-logs >"$dir/opencode.log" 2>&1 &
server=$!
running+=("$server")
at=http://127.0.0.1:$port
until_true 60 grep -q listening "$dir/opencode.log" || fail "opencode does not start"
# A request that comes too early is never answered.
until_true 120 curl -sf -m 15 "$at/session" || fail "opencode does not start"
session=$(curl -sf -X POST "$at/session" -H 'content-type: application/json' -d '{}' | sed 's/.*"id":"\(ses_[^"]*\)".*/\1/')
curl -sf -m 120 -X POST "$at/session/$session/message" -H 'content-type: application/json' \
    -d '{"parts": [{"type": "text", "text": "good morning"}]}' >"$dir/turn" || fail "no turn"

echo "== an agent at alpha asks; the session is idle"
sleep 3
before=$(requests)
sent=$(date +%s%3N)
ask() { at alpha ada sessions send agent:code:main "how far is the build?" --wait 0; }
until_true 30 ask || fail "it cannot be sent to"
told() { grep -q '"notice":"1 unread mesh message from ada: call inbox_wait."' "$dir/model"; }
until_true 30 told || fail "no turn was begun"
first=$(grep -m 1 "\"notice\":\"1" "$dir/model")
echo "the model's first request came $(($(sed 's/.*"at":\([0-9]*\).*/\1/' <<<"$first") - sent)) ms after the send had begun"

echo "== it reads and answers"
answered() { at alpha ada inbox | grep -q 'it is green'; }
until_true 60 answered || fail "no answer came"
at alpha ada inbox
sed -n "$((before + 1)),\$p" "$dir/model"

echo "== then silence"
sleep 3
before=$(requests)
sleep "${SILENCE:-20}"
[ "$(requests)" = "$before" ] || fail "it was woken again: $(tail -n 1 "$dir/model")"

echo "== killed, it leaves nothing behind"
kill -9 "$server"
gone() { ! pgrep -f "clawmesh inbox --wait --hook .*$dir" >/dev/null; }
until_true 20 gone || fail "the waiting program outlives the host"

echo "== detach"
(run "$root/$target/clawmesh" detach opencode --yes) >/dev/null
cmp "$dir/before" "$home/.config/opencode/opencode.json" || fail "the user's file is not as before"
[ ! -e "$home/.config/opencode/plugins/clawmesh.js" ] || fail "the plugin is there"
echo "all good"
