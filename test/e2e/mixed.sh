#!/bin/sh
# Runs sites of this tree and of the release before, which the file `previous` names, in one
# federation. The older program is built once and kept in the user's cache.
set -e
cd "$(dirname "$0")/../.."
commit=$(grep -v '^#' test/e2e/previous)
kept="${XDG_CACHE_HOME:-$HOME/.cache}/gridnode/previous/$commit"
if [ ! -x "$kept/gridnode" ]; then
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	git archive "$commit" | tar -x -C "$work"
	(cd "$work" && go build -trimpath -o gridnode ./cmd/gridnode)
	mkdir -p "$kept"
	mv "$work/gridnode" "$kept/gridnode"
fi
echo "the release before: $commit, $kept/gridnode"
GRIDNODE_E2E_PROGRAM="$PWD/bin/gridnode" GRIDNODE_E2E_PREVIOUS="$kept/gridnode" go test -count 1 -run Mixed ./test/e2e
