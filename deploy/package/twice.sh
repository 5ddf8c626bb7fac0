#!/bin/sh
# Builds the commit of this folder twice and compares what comes out: in folders of other
# names and depths, with caches of their own, another umask, time zone and language, and a
# while apart. Takes as long as building everything four times; what is committed meanwhile
# is not looked at.
set -e
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone --quiet --bare . "$work/pinned" # both builds are of its HEAD
git -C "$work/pinned" log -1 --format="twice: %H"
cd "$work"
build() { # FOLDER UMASK ZONE LANGUAGE
	git clone --quiet "$work/pinned" "$work/$1"
	(
		cd "$work/$1"
		go mod download
		(cd tools/dist && go mod download)
		umask "$2"
		export TZ="$3" LC_ALL="$4" GOCACHE="$work/$1/.cache"
		make --silent dist VERSION="$VERSION" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
		rm -rf .cache
	)
}
build one 022 UTC C
sleep 2 # what takes the clock's seconds shows
build another/and/deeper 077 Pacific/Auckland C.UTF-8
diff "$work/one/dist/SHA256SUMS" "$work/another/and/deeper/dist/SHA256SUMS" || { echo "two builds differ"; exit 1; }
cat "$work/one/dist/SHA256SUMS"
