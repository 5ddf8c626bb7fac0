#!/bin/sh
# Before the files go. At an upgrade the daemon runs on until the new files are there.
set -e
case "${1:-}" in
upgrade | 1) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
	systemctl stop gridnode.service || true
fi
# Nobody would take up what still runs: end it. The watcher ends with its jobs.
if command -v gridnode >/dev/null && getent passwd gridnode >/dev/null; then
	for pid in $(cat /sys/fs/cgroup/system.slice/gridnode.service/cgroup.procs 2>/dev/null); do
		kill -TERM "$pid" 2>/dev/null || true
	done
fi
exit 0
