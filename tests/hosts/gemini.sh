#!/usr/bin/env bash
# Gemini CLI for real, with a stub in place of its model and no account: `tests/hosts/gemini.sh`. By hand: it needs npm and its
# registry.
#
# Nothing wakes it while it is idle. Its hooks tell of unread messages when a turn begins: its model reads the inbox and answers.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/hosts/lib.sh

need npm
need node
[ -n "${BUILT:-}" ] || cargo build --quiet --locked -p node -p cli
package @google/gemini-cli@0.61.0
gemini=$package/bundle/gemini.js
home=$dir/home
project=$dir/project
mkdir -p "$home/.gemini" "$project"
root=$PWD
model_up
run() {
    exec env --chdir="$project" HOME="$home" PATH="$root/$target:$PATH" GEMINI_API_KEY=none GOOGLE_GEMINI_BASE_URL="$model" \
        GEMINI_CLI_TRUST_WORKSPACE=true NO_COLOR=1 "$@"
}
cat >"$home/.gemini/settings.json" <<JSON
{
  // of its user
  "security": { "auth": { "selectedType": "gemini-api-key" } },
  "general": { "enableAutoUpdate": false },
  "privacy": { "usageStatisticsEnabled": false }
}
JSON
cp "$home/.gemini/settings.json" "$dir/before"

echo "== nodes"
node_up alpha
node_up beta --join "$(ticket alpha)"

echo "== attach"
(run "$root/$target/clawmesh" attach gemini --yes --agent-id gem --data-dir "$dir/beta" --key-file "$dir/beta.key") | grep -v '^[+]'

echo "== an agent at alpha asks; gemini does not run"
ask() { at alpha ada sessions send agent:gem:main "how far is the build?" --wait 0; }
until_true 30 ask || fail "it cannot be sent to"

echo "== gemini ($( (run node "$gemini" --version) 2>/dev/null | tail -n 1)): a turn of its user's"
(run timeout 240 node "$gemini" --approval-mode yolo -m gemini-2.5-flash -p "good morning") >"$dir/gemini.log" 2>&1 ||
    fail "no turn: $?"
grep -q '"notice":"1 unread mesh message from ada: call inbox_wait."' "$dir/model" || fail "the notice is in no request"
cat "$dir/model"
answered() { at alpha ada inbox | grep -q 'it is green'; }
until_true 60 answered || fail "no answer came"
at alpha ada inbox

echo "== detach"
(run "$root/$target/clawmesh" detach gemini --yes) >/dev/null
cmp "$dir/before" "$home/.gemini/settings.json" || fail "the user's file is not as before"
echo "all good"
