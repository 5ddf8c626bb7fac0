package run

import "strconv"

// tasksScript starts a command several times beside each other, each with its number. Once one
// has failed it ends with that one's code, and who watches it ends the others: so it is with
// the tasks of a squad. A signal is for the tasks, which have it, too, and end as they like.
// Any site has a shell, inside of walls, too.
const tasksScript = `n=$1; shift; s=
trap 's=1' HUP INT QUIT USR1 USR2 TERM
exec 3<&0 5>&1
in=/proc/self/fd/3; [ -f $in ] || in=/dev/null
{ i=0; while [ $i -lt $n ]; do {
trap : HUP INT QUIT USR1 USR2 TERM
( export GRIDNODE_RANK=$i GRIDNODE_LOCAL_RANK=$i SLURM_PROCID=$i SLURM_LOCALID=$i; exec "$@" ) <$in 3<&- >&5 4>&- 5>&-
echo "$i $?" >&4; } & i=$((i+1)); done; } 4>&1 | { trap 's=1' HUP INT QUIT USR1 USR2 TERM; while [ $n -gt 0 ]; do
if read -r i c; then n=$((n-1)); [ $c = 0 ] || { echo "task $i of this job has ended with code $c" >&2; exit $c; }
elif [ -n "$s" ]; then s=; else exit 137; fi; done; }`

// tasksCommand returns what starts a command once for each of n tasks.
func tasksCommand(n int64, args []string) []string {
	return append([]string{"/bin/sh", "-c", tasksScript, "tasks", strconv.FormatInt(n, 10)}, args...)
}

// besideEnv is what rankEnv is to a squad, of tasks that run at one site. tasksScript says
// each its number.
func besideEnv(tasks int64) []string {
	return []string{
		"GRIDNODE_RANK=0", "GRIDNODE_LOCAL_RANK=0", "GRIDNODE_LOCAL_NTASKS=" + strconv.FormatInt(tasks, 10),
		"GRIDNODE_COMPONENT=0", "GRIDNODE_COMPONENTS=1",
	}
}
