// Package console says what goes between somebody's terminal and a process of a job: what
// is asked for, and the frames of both directions. It is the same all the way, through the
// daemon of the job's home and that of the site where it runs, to the shim (package
// gridnode/node/shim), which has the process. Daemons in between only pass frames on: the
// shim checks what comes, the asker what comes back.
package console
