#!/bin/sh
# usage: build.sh DIRECTORY
# Builds there what each site needs: the launcher mpi, redirect.so, and the program pi.
set -eu
if [ $# -ne 1 ]; then
	echo "usage: $0 DIRECTORY" >&2
	exit 2
fi
for tool in go mpicc; do
	if ! command -v "$tool" >/dev/null; then
		echo "$0: there is no $tool; Debian: apt-get install golang openmpi-bin libopenmpi-dev" >&2
		exit 1
	fi
done
mkdir -p "$1"
to=$(cd "$1" && pwd)
cd "$(dirname "$0")"
go build -o "$to/mpi" .
mpicc -O2 -Wall -Wextra -shared -fPIC -o "$to/redirect.so" c/redirect.c -ldl
mpicc -O2 -Wall -Wextra -o "$to/pi" c/pi.c -lm
