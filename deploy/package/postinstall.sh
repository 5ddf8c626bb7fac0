#!/bin/sh
# After the files are there: the account, its directories, and the unit. Runs again at
# every upgrade, under dpkg, rpm and apk.
set -e

home=/var/lib/gridnode

case "${1:-}" in
abort-*) exit 0 ;; # dpkg takes something back
esac

if ! getent passwd gridnode >/dev/null; then
	if command -v adduser >/dev/null && adduser --help 2>&1 | grep -q -e --system; then
		adduser --system --group --quiet --home "$home" --no-create-home --gecos "gridnode, a site of a federation" gridnode
	elif command -v useradd >/dev/null; then
		useradd --system --user-group --home-dir "$home" --no-create-home --comment "gridnode, a site of a federation" gridnode
	else # busybox
		addgroup -S gridnode
		adduser -S -D -H -h "$home" -G gridnode -g "gridnode, a site of a federation" gridnode
	fi
fi

# The daemon's own, closed to others. Settings lie where an administrator looks for them.
chown gridnode:gridnode "$home" /etc/gridnode
chmod 0700 "$home"
chmod 0750 /etc/gridnode
if [ ! -e "$home/config.yaml" ] && [ ! -L "$home/config.yaml" ]; then
	ln -s /etc/gridnode/config.yaml "$home/config.yaml"
	chown -h gridnode:gridnode "$home/config.yaml"
fi

if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
if command -v deb-systemd-helper >/dev/null; then
	deb-systemd-helper unmask gridnode.service >/dev/null || true
	if deb-systemd-helper --quiet was-enabled gridnode.service; then
		deb-systemd-helper enable gridnode.service >/dev/null || true
	else
		deb-systemd-helper update-state gridnode.service >/dev/null || true
	fi
elif [ -d /run/systemd/system ] && [ "${1:-1}" = 1 ]; then
	systemctl enable --quiet gridnode.service || true
fi

# A daemon that runs is started anew with the new program: its jobs go on meanwhile. One
# that has no key waits for 'gridnode init'.
if [ -d /run/systemd/system ] && [ -e "$home/key" ]; then
	systemctl restart gridnode.service || true
fi
exit 0
