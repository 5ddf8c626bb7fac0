#!/bin/sh
# After the files are gone. dpkg alone tells removing from purging: rpm and apk leave the
# key, the settings and the jobs where they are.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
if [ "${1:-}" = remove ] && command -v deb-systemd-helper >/dev/null; then
	deb-systemd-helper mask gridnode.service >/dev/null || true
fi
if [ "${1:-}" = purge ]; then
	if command -v deb-systemd-helper >/dev/null; then
		deb-systemd-helper purge gridnode.service >/dev/null || true
		deb-systemd-helper unmask gridnode.service >/dev/null || true
	fi
	rm -rf /etc/gridnode /var/lib/gridnode
fi
exit 0
