package lrms

import "gridnode/grid"

// state says where a task is.
type state uint8

const (
	queued   state = iota // link is its position in the queue
	reserved              // link is its promise, whose start lies ahead
	due                   // link is its promise, whose start has come
	running
	parked // link is its position in the queue, which is kept for it
	guest  // runs on processors of another site
	lined  // waits until it is promised GPUs; in Cluster.line
)

// task is what the cluster knows about an ID. Tasks live in a slab and refer to
// each other by index.
type task struct {
	Request
	start grid.Time // running: since when
	end   grid.Time // running: start + Estimate
	link  int32
	state state
}

// tasks is the slab and the index by ID.
type tasks struct {
	slab  []task
	free  []int32
	index map[grid.TaskID]int32
}

// create adds a task that is not known yet and returns its index.
func (t *tasks) create(v task) int32 {
	var i int32
	if n := len(t.free); n > 0 {
		i = t.free[n-1]
		t.free = t.free[:n-1]
		t.slab[i] = v
	} else {
		i = int32(len(t.slab))
		t.slab = append(t.slab, v)
	}
	t.index[v.ID] = i
	return i
}

// drop forgets a task.
func (t *tasks) drop(i int32) {
	delete(t.index, t.slab[i].ID)
	t.free = append(t.free, i)
}

// String names the state in error messages.
func (s state) String() string {
	switch s {
	case queued, lined:
		return "queued"
	case reserved, due:
		return "reserved"
	case parked:
		return "parked"
	}
	return "running"
}
