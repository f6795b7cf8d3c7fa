#!/bin/sh
# Installs the programs of clawmesh out of a release: a folder, or an address that serves one.
#
#   sh install.sh --from DIR|https://HOST/PATH --signers FILE [--to PREFIX]
#
# FILE names the keys that may sign a release, in the form of ssh-keygen's allowed signers:
#   release@clawmesh namespaces="clawmesh-release" ssh-ed25519 AAAA…
# It has to come by another way than the release. Without it nothing is installed; `--unsigned` instead of it installs what the
# manifest names, whoever wrote that. Nothing is written before every byte was checked. An older release that was signed is
# taken, too: look at the version that is printed.
set -eu

say() { printf '%s\n' "$*" >&2; }
fail() {
    say "install.sh: $*"
    exit 1
}

from= signers= unsigned= prefix= target=
while [ $# -gt 0 ]; do
    case $1 in
        --from | --signers | --to | --target)
            [ $# -ge 2 ] || fail "$1 wants a value"
            case $1 in
                --from) from=${2%/} ;;
                --signers) signers=$2 ;;
                --to) prefix=$2 ;;
                --target) target=$2 ;;
            esac
            shift 2
            ;;
        --unsigned) unsigned=yes && shift ;;
        *) fail "it takes --from, --signers, --to, --target and --unsigned, and not $1" ;;
    esac
done
[ -n "$from" ] || fail "--from DIR or --from https://HOST/PATH says where the release is"
case $from in http://*) fail "http:// has no proof of who answers: use https://" ;; esac
case $from in https://*) [ -n "$signers" ] || command -v curl >/dev/null || fail "--unsigned needs curl, which checks who answers" ;; esac
[ -n "$signers$unsigned" ] || fail "--signers FILE says who may sign; --unsigned takes a release of anybody"
[ -z "$signers" ] || [ -r "$signers" ] || fail "$signers cannot be read"
[ -z "$signers" ] || command -v ssh-keygen >/dev/null || fail "ssh-keygen is needed (OpenSSH 8.1 or later)"

if [ -z "$target" ]; then
    case $(uname -s)-$(uname -m) in
        Linux-x86_64) target=x86_64-unknown-linux-gnu ;;
        Linux-aarch64) target=aarch64-unknown-linux-gnu ;;
        Darwin-arm64) target=aarch64-apple-darwin ;;
        *) fail "there are no programs for $(uname -s) on $(uname -m): build them from source" ;;
    esac
fi
if [ -z "$prefix" ]; then
    if [ "$(id -u)" = 0 ]; then prefix=/usr/local; else prefix=$HOME/.local; fi
fi

temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
trap 'exit 1' HUP INT TERM

# A file of the release, of at most so many bytes.
fetch() {
    case $from in
        https://*)
            if command -v curl >/dev/null; then
                curl -fsSL --proto '=https' --max-filesize "$2" -o "$temp/$1" "$from/$1"
            else
                # A failure is seen by the size and the digest.
                wget -q -O - "$from/$1" | head -c "$(($2 + 1))" >"$temp/$1"
            fi
            ;;
        *) cp -- "$from/$1" "$temp/$1" ;;
    esac || fail "there is no $1 at $from"
    [ "$(wc -c <"$temp/$1")" -le "$2" ] || fail "$1 is too large"
}

digest() {
    if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d' ' -f1
}

fetch MANIFEST 65536
if [ -n "$signers" ]; then
    fetch MANIFEST.sig 65536
    ssh-keygen -Y verify -f "$signers" -I release@clawmesh -n clawmesh-release -s "$temp/MANIFEST.sig" \
        <"$temp/MANIFEST" >/dev/null 2>&1 || fail "the manifest is not signed by release@clawmesh of $signers: nothing is installed"
else
    say "install.sh: nobody's signature is checked"
fi
# clawmesh VERSION, commit COMMIT, and a line SHA256 SIZE NAME for each file.
version=$(sed -n '1s/^clawmesh \([0-9A-Za-z.+-]*\)$/\1/p' "$temp/MANIFEST")
[ -n "$version" ] || fail "the manifest is malformed"
file=clawmesh-$version-$target.tar.gz
line=$(awk -v file="$file" 'NF == 3 && $3 == file && $1 ~ /^[0-9a-f]+$/ && $2 ~ /^[0-9]+$/ { print; exit }' "$temp/MANIFEST")
[ -n "$line" ] || fail "the release has no $file"
sum=${line%% *}
size=${line#* }
size=${size%% *}
fetch "$file" "$size"
[ "$(wc -c <"$temp/$file" | tr -d ' ')" = "$size" ] || fail "$file is not of $size bytes: nothing is installed"
[ "$(digest "$temp/$file")" = "$sum" ] || fail "$file is not the one of the manifest: nothing is installed"

mkdir "$temp/files"
tar -xzf "$temp/$file" -C "$temp/files"
[ -d "$temp/files/bin" ] && [ -d "$temp/files/share" ] || fail "$file is not a release: nothing is installed"
# One file, at once. `mktemp` makes it anew, so no link that waits there is followed.
put() {
    mkdir -p "${2%/*}"
    new=$(mktemp "${2%/*}/.clawmesh.XXXXXX")
    cp "$1" "$new"
    chmod "$3" "$new"
    mv -f "$new" "$2"
}
umask 022
# File by file: folders that are there keep their rights, and links to folders stay. Programs last.
(cd "$temp/files" && find share -type f) >"$temp/list"
while IFS= read -r name; do
    put "$temp/files/$name" "$prefix/$name" 644
done <"$temp/list"
for program in "$temp"/files/bin/*; do
    put "$program" "$prefix/bin/${program##*/}" 755
done
say "clawmesh $version is in $prefix/bin"
case :$PATH: in *":$prefix/bin:"*) ;; *) say "it is not in your PATH yet" ;; esac
say "next: clawmeshd up, or clawmeshd service install"
