#!/usr/bin/env bash
# Copilot CLI for real, with a stub in place of its model and no account: `tests/hosts/copilot.sh`. By hand: it needs npm and its
# registry, and tmux for a terminal.
#
# First a turn of its user's: the hooks that `clawmesh attach copilot` writes tell of an unread message. Then a session waits for its
# user, and an agent at another node asks its agent: the extension that `attach` writes begins a turn in the session, whose model
# reads the inbox and answers. Copilot CLI takes extensions with --experimental alone.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/hosts/lib.sh

need npm
need node
need tmux
[ -n "${BUILT:-}" ] || cargo build --quiet --locked -p node -p cli
package @github/copilot@1.0.102
copilot=$package-linux-x64/copilot
[ -x "$copilot" ] || skip "Copilot CLI has no program for this machine"
home=$dir/home
project=$dir/project
mkdir -p "$home/.copilot" "$project"
root=$PWD
model_up
run() {
    exec env --chdir="$project" -u COPILOT_HOME HOME="$home" PATH="$root/$target:$PATH" COPILOT_PROVIDER_BASE_URL="$model/v1" \
        COPILOT_MODEL=stub COPILOT_OFFLINE=true COPILOT_AUTO_UPDATE=false COPILOT_ALLOW_ALL=true "$@"
}

echo "== nodes"
node_up alpha
node_up beta --join "$(ticket alpha)"

echo "== attach"
(run "$root/$target/clawmesh" attach copilot --yes --agent-id pilot --data-dir "$dir/beta" --key-file "$dir/beta.key") | grep -v '^[+]'

ask() { at alpha ada sessions send agent:pilot:main "$1" --wait 0; }
answers() { at alpha ada inbox | grep -c 'it is green'; }
answered() { [ "$(answers)" -ge "$1" ]; }

echo "== a turn of its user's, without the extension"
until_true 30 ask "how far is the build?" || fail "it cannot be sent to"
(run timeout 120 "$copilot" --allow-all-tools -p "good morning") >"$dir/copilot.log" 2>&1 || fail "no turn"
grep -q '"notice":"1 unread mesh message from ada: call inbox_wait."' "$dir/model" || fail "the notice is in no request"
cat "$dir/model"
until_true 30 answered 1 || fail "no answer came"

echo "== copilot ($( (run "$copilot" --version) 2>&1 | head -n 1))"
screen() { tmux -L "clawmesh$$" "$@"; }
stop_screen() { screen kill-server 2>/dev/null || true; end; }
trap stop_screen EXIT
(run tmux -L "clawmesh$$" new-session -d -x 120 -y 40 "$copilot --experimental --allow-all-tools 2>$dir/copilot.log")
shown() { screen capture-pane -p >"$dir/screen.log"; grep -q -- "$1" "$dir/screen.log"; }
until_true 90 shown '? help' || fail "copilot does not start"

echo "== an agent at alpha asks; the session waits for its user"
sleep 5
before=$(requests)
sent=$(date +%s%3N)
until_true 30 ask "and the tests?" || fail "it cannot be sent to"
told() { [ "$(requests)" -gt "$before" ]; }
until_true 60 told || { shown x; fail "no turn was begun"; }
first=$(sed -n "$((before + 1))p" "$dir/model")
echo "the model's first request came $(($(sed 's/.*"at":\([0-9]*\).*/\1/' <<<"$first") - sent)) ms after the send had begun"

echo "== it reads and answers"
until_true 60 answered 2 || { shown x; fail "no answer came"; }
at alpha ada inbox
sed -n "$((before + 1)),\$p" "$dir/model"

echo "== then silence"
sleep 3
before=$(requests)
sleep "${SILENCE:-20}"
[ "$(requests)" = "$before" ] || fail "it was woken again: $(tail -n 1 "$dir/model")"
screen kill-server
gone() { ! pgrep -f "clawmesh inbox --wait --hook .*$dir" >/dev/null; }
until_true 20 gone || fail "the waiting program outlives the host"

echo "== detach"
(run "$root/$target/clawmesh" detach copilot --yes) >/dev/null
[ ! -e "$home/.copilot/extensions" ] || fail "the extension is there"
echo "all good"
