#!/bin/sh
# Checks what `make dist` has built, with what is at hand: lintian, and systemd's own check
# of the unit. Says what it leaves out.
set -e
out=$1
cd "$(dirname "$0")/../.."
if command -v lintian >/dev/null; then
	lintian --fail-on error,warning "$out"/*_amd64.deb
else
	echo "lintian is not here: left out"
fi
if command -v systemd-analyze >/dev/null; then
	unit=$(mktemp -d)
	trap 'rm -rf "$unit"' EXIT
	# What the package brings need not lie on this machine.
	sed 's#=/usr/bin/gridnode\b#=/bin/true#' deploy/systemd/gridnode.service >"$unit/gridnode.service"
	systemd-analyze verify --man=no --recursive-errors=no "$unit/gridnode.service"
	systemd-analyze security --offline=true --threshold=30 deploy/systemd/gridnode.service >/dev/null
else
	echo "systemd-analyze is not here: left out"
fi
(cd "$out" && sha256sum --check --quiet SHA256SUMS)
