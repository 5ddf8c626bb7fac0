#!/bin/sh
# Makes a directory with this machine's release of Debian: systemd, and what the package wants or
# recommends. TestPackagePage boots it. A directory that is there stays.
set -e
to=$1
[ "$(id -u)" = 0 ] || { echo "a clean system is made by root"; exit 1; }
command -v mmdebstrap >/dev/null && command -v systemd-nspawn >/dev/null ||
	{ apt-get update -q && apt-get install -yq --no-install-recommends mmdebstrap systemd-container; }
[ -e "$to/usr/bin/apt" ] && exit 0
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
mkdir -p "$(dirname "$to")"
rm -rf "$to" "$to.new"
mmdebstrap --quiet --variant=minbase --include=systemd-sysv,adduser,bubblewrap,curl \
	--dpkgopt=force-unsafe-io --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
	"$release" "$to.new"
mv "$to.new" "$to"
