#!/usr/bin/env bash
# Installs what the tests of the Slurm engine try: Slurm's controller and node daemon, and
# for the cluster that keeps accounts slurmdbd and MariaDB. No service is started.
set -euo pipefail
packages=()
command -v slurmctld >/dev/null || packages+=(slurmctld)
command -v sbatch >/dev/null || packages+=(slurm-client)
command -v slurmd >/dev/null || packages+=(slurmd)
command -v slurmdbd >/dev/null || packages+=(slurmdbd slurm-wlm-mysql-plugin)
command -v mariadbd >/dev/null || packages+=(mariadb-server)
if [ "${#packages[@]}" -gt 0 ]; then
	# RUNLEVEL keeps maintainer scripts from starting services where nothing else does.
	apt-get update -q
	RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends "${packages[@]}"
fi
slurmctld -V # of all of them the one that asks no cluster
