#!/bin/sh
# Runs the commands that the documents show: every line of every block fenced as ```sh, from a folder that looks like the
# repository's root. The last command of a block fenced as ```sh exits N must end with that status.
#   tests/documents.sh SOURCE BUILD DOCUMENT…
set -eu
source=$1 build=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for name in ci docs include; do ln -s "$source/$name" "$folder/$name"; done
ln -s "$build" "$folder/build"
cd "$folder"
export GCK_NO_INSTALL=1

blocks=0
for document in "$@"; do
  # One file a block: its first line is the status, the rest its commands.
  awk -v folder="$folder" '
    /^```sh/ { inside = 1; file = sprintf("%s/block-%02d", folder, ++n); print ($2 == "exits" ? $3 : 0) > file; next }
    /^```/ { if (inside) close(file); inside = 0; next }
    inside { print > file }' "$source/$document"
  for block in "$folder"/block-*; do
    [ -f "$block" ] || { echo "$document: no commands to run" >&2; exit 1; }
    wanted=$(head -n 1 "$block") got=0
    # ci/test would run this very test again; and a ctest that only lists would still empty the running one's log.
    sed -e 1d -e 's,^\./ci/test$,./ci/test --version,' "$block" >"$folder/commands"
    echo "== $document: exits $wanted"
    sed 's/^/   $ /' "$folder/commands"
    sh -eu "$folder/commands" || got=$?
    if [ "$got" -ne "$wanted" ]; then echo "$document: exit $got, not $wanted" >&2; exit 1; fi
    rm "$block"
    blocks=$((blocks + 1))
  done
done
echo "$blocks blocks ran as the documents say"
