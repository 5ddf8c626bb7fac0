package node

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"gridnode/grid"
	"gridnode/internal/atomicfile"
	"gridnode/internal/wire"
	"gridnode/node/content"
	"gridnode/node/forward"
	"gridnode/node/pilot"
	"gridnode/node/run"
	"gridnode/node/shim"
	"gridnode/node/site"
)

// carryGang carries out what the home of a gang orders.
func (x *pilots) carryGang(e pilot.Effect) {
	switch e := e.(type) {
	case pilot.Gather:
		x.gather(e)
	case pilot.StartOwn:
		x.own.Start(e.Task)
	case pilot.KillOwn:
		x.own.Kill(e.Task)
	case pilot.AcknowledgeOwn:
		x.own.Acknowledge(e.IDs)
	case pilot.Collect:
		x.collect(e)
	case pilot.Finish:
		close(x.collects[e.Gang])
		delete(x.collects, e.Gang)
	case pilot.Clear:
		if !x.files() {
			break
		}
		removeOutputs(x.h, e.Squads)
		_ = os.RemoveAll(x.inputsDir(e.Gang)) // pruned later if not now
		if x.h.files.Shared != "" {
			_ = os.RemoveAll(x.h.files.SharedInputs(e.Gang))
		}
	case pilot.Disband:
		x.forward.Remove(forward.ID{Home: e.Home, Task: e.Gang})
		if holder, holds := beneath(x.own).(run.Holder); holds && e.Home == x.h.id {
			holder.LetGo(e.Gang)
		}
	default:
		panic(fmt.Sprintf("node: unknown effect %T of a pilot's core", e))
	}
}

// inputsDir is where copies of what a job reads are at this site.
func (x *pilots) inputsDir(gang grid.TaskID) string {
	return x.h.files.Task(x.h.id, gang) + run.InputsSuffix
}

// connectTasks makes addresses here for the tasks of a gang; none if they are too many to
// speak to each other, or no processes.
func (x *pilots) connectTasks(home grid.SiteID, g *grid.Gang) ([]string, error) {
	if g.Tasks() > grid.PeersMax || !x.files() {
		return nil, nil
	}
	return x.forward.Add(forward.Group{ID: forward.ID{Home: home, Task: g.Task}, Sites: g.Sites()})
}

// gather makes addresses for a gang's tasks here, brings what they read, and has their
// processors held where that is not the site's to do.
func (x *pilots) gather(e pilot.Gather) {
	answer := &pilot.Gathered{Gang: e.Task.ID}
	tell := func(err error) {
		if err != nil {
			answer.Why = run.ShortReason(err)
		}
		if answer.Again = atomicfile.NoDescriptors(err); !answer.Again {
			x.tell(answer)
			return
		}
		x.wg.Go(func() {
			if x.h.pause(x.ctx, shim.ScarcePause) == nil {
				x.tell(answer)
			}
		})
	}
	var err error
	answer.Addresses, err = x.connectTasks(x.h.id, e.Task.Gang)
	holder, holds := beneath(x.own).(run.Holder)
	if err != nil || !e.Bring && !holds {
		tell(err)
		return
	}
	held := make(chan error, 1)
	if holds {
		holder.Hold(e.Task, func(why error) { held <- why })
	} else {
		held <- nil
	}
	ctx, cancel := context.WithTimeout(x.ctx, max(e.Due-x.h.Now(), 0).Duration())
	x.wg.Go(func() {
		defer cancel()
		if e.Bring {
			answer.Inputs, err = x.bringTo(ctx, e.Task)
		}
		if err == nil {
			select {
			case err = <-held:
			case <-ctx.Done():
				err = errors.New("its processors were not there in time")
			}
		}
		if x.ctx.Err() == nil {
			tell(err)
		}
	})
}

// bringTo brings what a gang reads to where its account gets at it.
func (x *pilots) bringTo(ctx context.Context, task *grid.Task) ([]string, error) {
	dir, err := x.h.files.InputsOf(task, &x.h.cfg.Accounts)
	if err != nil {
		return nil, err
	}
	paths, err := x.h.bring.inputs(ctx, task.Job.Inputs, dir)
	if err == nil {
		err = x.h.files.Give(task, &x.h.cfg.Accounts)
	}
	return paths, err
}

// collect makes the outputs of a gang until they are to be complete.
func (x *pilots) collect(e pilot.Collect) {
	complete := make(chan struct{})
	x.collects[e.Gang.Task] = complete
	if !x.files() {
		x.wg.Go(func() {
			select {
			case <-complete:
				x.tell(&pilot.Collected{Gang: e.Gang.Task})
			case <-x.ctx.Done():
			}
		})
		return
	}
	output := newGangOutput(x.h, e.Gang)
	x.wg.Go(func() {
		tick := time.NewTicker(outputPoll * pollsOf(e.Gang.Tasks()))
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				output.merge(false)
			case <-complete:
				for !output.merge(true) {
					if x.h.pause(x.ctx, fetchAgain) != nil {
						output.close()
						return
					}
				}
				x.tell(&pilot.Collected{Gang: e.Gang.Task})
				return
			case <-x.ctx.Done():
				output.close()
				return
			}
		}
	})
}

// Files of jobs of several tasks, and of those on leased processors, lie where the tasks ran. Home
// gathers them when the job is over.

// ranSuffix ends the name of the note that says on whose processors a job ran which this site had
// on lease.
const ranSuffix = ".ran"

// errNotYet is returned while a site cannot be reached that has some of a job's files: it is to be
// asked again.
var errNotYet = errors.New("some of its files cannot be had now")

// noteRan notes before a job begins that another site runs it.
func (m *homecoming) noteRan(task *grid.Task) {
	if task.Job.Command == nil || task.Squad != nil || task.Gang != nil || !task.Job.Keeps(task.Pilot.Site) {
		return
	}
	text := fmt.Sprintf("%d %s", task.ID.Epoch, task.Pilot.Site)
	if err := m.write(task.ID.Job, ranSuffix, []byte(text)); err != nil {
		m.f.h.log.Warn("cannot note where a job runs: its files will stay there", "job", task.ID.Job, "error", err)
	}
}

// ran returns on whose leased processors an execution ran; empty if it is not known of any.
func (m *homecoming) ran(task grid.TaskID) grid.SiteID {
	text, err := os.ReadFile(m.path(task.Job, ranSuffix))
	if err != nil {
		return ""
	}
	epoch, at, _ := strings.Cut(string(text), " ")
	if n, err := strconv.ParseUint(epoch, 10, 32); err != nil || uint32(n) != task.Epoch {
		return ""
	}
	return grid.SiteID(at)
}

// piece is what one site has of a job's files.
type piece struct {
	at    grid.SiteID
	task  grid.TaskID
	first int // rank of the first task
	tasks int
}

// pieces returns who may have what of the files of a job that this site runs, alone or on the
// processors of others: by rank.
func (m *homecoming) pieces(v *site.View) (pieces []piece) {
	self, task := m.f.h.id, grid.TaskID{Job: v.Job.ID, Epoch: v.Epoch}
	add := func(p piece) {
		if v.Job.Keeps(p.at) {
			pieces = append(pieces, p)
		}
	}
	switch g := v.Gang; {
	case v.Site != self:
	case g != nil:
		for i := range g.Parts {
			add(piece{cmp.Or(g.Parts[i].Pilot.Site, self), grid.SquadTask(task, i), g.FirstOf(i), g.TasksOf(i)})
		}
	default:
		add(piece{cmp.Or(m.ran(task), self), task, 0, 1})
	}
	return pieces
}

// ranked reports whether the files of a job lie in folders that are named after ranks.
func ranked(v *site.View) bool { return v.Gang != nil }

// gather gets the pieces of a job's files into the store and returns the tree of all.
// content.ErrAbsent says that there is none, errNotYet that it has to be tried again.
func (m *homecoming) gather(ctx context.Context, v *site.View, what *grid.Files) (*content.Tree, error) {
	var there []content.Piece
	for _, p := range m.pieces(v) {
		tree, err := m.piece(ctx, &p, what)
		switch {
		case errors.Is(err, content.ErrAbsent):
			continue
		case err == nil:
		case p.at == m.f.h.id || ctx.Err() != nil:
			return nil, err
		case errors.Is(err, wire.ErrMalformed):
			tree = &content.Tree{Left: 1, Why: fmt.Sprintf("what site %s gives is not in order: %v", p.at, err)}
		case time.Since(time.UnixMicro(int64(v.End))) < fetchGiveUp:
			return nil, fmt.Errorf("%w: site %s: %w", errNotYet, p.at, err)
		default:
			tree = &content.Tree{Left: 1, Why: fmt.Sprintf("site %s could not be reached for %v", p.at, fetchGiveUp)}
		}
		there = append(there, content.Piece{Tree: tree, First: p.first, Tasks: p.tasks})
	}
	switch {
	case len(there) == 0:
		return nil, content.ErrAbsent
	case !ranked(v):
		return there[0].Tree, nil
	}
	return content.Join(there, v.Gang.Tasks())
}

// piece gets one piece into the store.
func (m *homecoming) piece(ctx context.Context, p *piece, what *grid.Files) (*content.Tree, error) {
	if p.at != m.f.h.id {
		tree, _, err := m.f.results(ctx, p.at, p.task, what)
		return tree, err
	}
	tree, index, err := m.f.left(ctx, given{home: p.at, task: p.task}, what)
	if err != nil {
		return nil, err
	}
	missing, size := m.f.store.Missing(tree.Chunks)
	room, err := m.f.store.Room(size)
	if err != nil {
		return nil, err
	}
	defer room.Release()
	var b []byte
	for _, c := range missing {
		if b, err = index.Chunk(c.Digest, b); err != nil {
			return nil, err
		}
		if err := room.Keep(c.Digest, b); err != nil {
			return nil, err
		}
	}
	return tree, nil
}

// later has a job's files asked for again.
func (m *homecoming) later(job grid.JobID, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	pause := min(max(2*m.late[job], fetchAgain), fetchAgainMax)
	m.late[job] = pause
	m.f.h.log.Debug("files of a job not fetched yet", "job", job, "error", why)
	time.AfterFunc(pause, func() { m.jobs.Put(job) })
}

// release removes the pieces of a job's files, which are in the store, where they were. A site that
// cannot be reached forgets them by itself.
func (m *homecoming) release(v *site.View) {
	for _, p := range m.pieces(v) {
		var err error
		if p.at == m.f.h.id {
			err = remove(m.f.h, func() error { return m.f.h.files.RemoveLeft(p.at, p.task) })
		} else {
			err = received(m.f.h, p.at, p.task)
		}
		if err != nil {
			m.f.h.log.Debug("files that are home stay where the job ran for now", "job", v.Job.ID, "site", p.at, "error", err)
		}
	}
	_ = os.Remove(m.path(v.Job.ID, ranSuffix)) // pruned later if not now
}

// remove removes files of a task that are home; later if no descriptor is left for that.
func remove(h *Host, files func() error) error {
	err := files()
	if atomicfile.NoDescriptors(err) && h.ctx.Err() == nil {
		time.AfterFunc(fetchAgain, func() { _ = remove(h, files) })
	}
	return err
}

// received tells a site that this one has all that an execution has left.
func received(h *Host, at grid.SiteID, task grid.TaskID) error {
	ctx, cancel := context.WithTimeout(h.ctx, outputIdleMax)
	defer cancel()
	s, err := h.net.Open(ctx, at, outputProtocol)
	if err != nil {
		return err
	}
	defer s.Reset()
	_, err = receipt(s, bufio.NewReader(s), task)
	return err
}
