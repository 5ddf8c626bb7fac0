#!/bin/sh
# Before the files go. At an upgrade the daemon runs on until the new files are there.
set -e
case "${1:-}" in
upgrade | 1) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
	systemctl stop gridnode.service || true
	# Nobody would take up what still runs: end it. The watcher ends with its jobs.
	systemctl kill gridnode.service 2>/dev/null || true
fi
exit 0
