# Two nodes, a stub in place of a model's server, and an agent that asks: for the scripts of agent hosts. Sourced.
#
# Everything is in $dir and on loopback, and ends with the script.

[ -n "${BASH_VERSION:-}" ] || exit 2

target=${CARGO_TARGET_DIR:-target}/debug
dir=$(mktemp -d)
running=()

skip() { echo "skipped: $1"; exit 0; }
fail() {
    echo "FAILED: $1" >&2
    # What was on the screen, and said in logs.
    for file in "$dir"/*.log; do echo "-- $file" >&2; tail -n 15 "$file" >&2; done
    exit 1
}

end() {
    for process in "${running[@]}"; do kill "$process" 2>/dev/null || true; done
    for process in "${running[@]}"; do wait "$process" 2>/dev/null || true; done
    # KEEP=1: to look at it afterwards.
    [ -n "${KEEP:-}" ] && echo "kept: $dir" || rm -rf "$dir"
}
trap end EXIT

# until_true SECONDS COMMAND...
until_true() {
    local until=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$until" ] || return 1
        sleep 0.2
    done
}

need() { command -v "$1" >/dev/null || skip "$1 is not there"; }

# package NAME: from npm, once for all scripts if HOSTS_DIR names a directory. $package is where it is.
package() {
    local prefix=${HOSTS_DIR:-$dir/npm}
    mkdir -p "$prefix"
    if [ ! -d "$prefix/node_modules/${1%@*}" ]; then
        npm install --silent --no-fund --no-audit --prefix "$prefix" "$1" >/dev/null 2>"$dir/npm.log" ||
            skip "npm cannot install $1"
    fi
    package=$prefix/node_modules/${1%@*}
}

# node NAME [FLAG...]: starts a node of its own directory.
node_up() {
    local name=$1
    shift
    "$target/clawmeshd" up --json --data-dir "$dir/$name" --key-file "$dir/$name.key" --name "$name" --no-socket --tcp 127.0.0.1:0 --http 127.0.0.1:0 \
        --listen 127.0.0.1:0 "$@" >"$dir/$name.ready" 2>"$dir/$name.log" &
    running+=($!)
    until_true 60 test -s "$dir/$name.ready" || fail "node $name does not start"
}

ticket() { sed 's/.*"ticket":"\([^"]*\)".*/\1/' "$dir/$1.ready"; }

# at NAME AGENT COMMAND...: as an agent at a node.
at() {
    local name=$1 agent=$2
    shift 2
    "$target/clawmesh" "$@" --data-dir "$dir/$name" --key-file "$dir/$name.key" --agent-id "$agent"
}

# The stub listens at $model; $dir/model has a line for each request.
model_up() {
    : >"$dir/model"
    command node tests/hosts/model.mjs 0 "$dir/model" >"$dir/model.port" 2>"$dir/model.log" &
    running+=($!)
    until_true 20 test -s "$dir/model.port" || fail "the stub does not start"
    model=http://127.0.0.1:$(cat "$dir/model.port")
}

# Requests that the stub has had.
requests() { wc -l <"$dir/model"; }
