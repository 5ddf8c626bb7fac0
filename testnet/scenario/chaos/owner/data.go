package owner

import (
	"fmt"
	"slices"

	"gridnode/coalloc/dataset"
	"gridnode/grid"
	"gridnode/testnet"
	"gridnode/testnet/scenario"
)

// Data has owners enter data sets and take them out, sites announce files of jobs, and users look for
// who holds a data set. It sees to it that
//
//   - what a site has said to hold it holds until it is taken out, whatever dies;
//   - who is said to hold one has held it not long ago, as said, and who has held one for long is
//     said to, if all that were asked have answered;
//   - a job that reads what nobody may copy begins at a holder of it, if its home could know.
type Data struct {
	Sight
	asked   map[uint64]*ask
	changed []map[string]bool   // by site: names of which it is not known what it holds
	look    []bool              // by site: something may have changed
	held    []map[string][]term // by site and name, oldest first
	counts  DataCounts
}

// DataCounts is what a run has seen of data sets.
type DataCounts struct {
	Held  int64 `json:"held"`  // data sets that were entered
	Found int64 `json:"found"` // answers about holders
	Read  int64 `json:"read"`  // parts of jobs that read any, as they began
	Bound int64 `json:"bound"` // of those, whose job could begin at holders only
}

// ask is what somebody wants of a site.
type ask struct {
	name string
	set  *dataset.Set // is to be held
	drop bool         // is to be held no more
}

// term is for how long a site has held a data set as it was.
type term struct {
	from, to grid.Time
	size     int64
	shared   bool
}

// Sets is how many data sets there are.
const Sets = 6

// The bounds of Data.
const (
	staleMost = 10 * grid.Minute // after which a holder is no holder that has not said so
	heldLeast = 5 * grid.Minute  // after which all can know who holds one
	sizeLeast = 1 << 30
	lentSpan  = 2 * grid.Minute // for which files of a job are announced at least
)

// NewData begins to watch.
func NewData(s Sight) *Data {
	w := &Data{Sight: s, asked: make(map[uint64]*ask), look: make([]bool, s.N.Len())}
	for range s.N.Len() {
		w.changed, w.held = append(w.changed, make(map[string]bool)), append(w.held, make(map[string][]term))
	}
	s.N.Observe(testnet.Observer{Turn: w.turn, Answer: w.answer, Start: w.start, Fault: w.fault})
	return w
}

// Counts returns what was seen.
func (w *Data) Counts() DataCounts { return w.counts }

// SetName returns the name of a data set, and how large it is.
func SetName(number uint64) (name string, size int64) {
	return numbered("set", number), sizeLeast + int64(number)
}

// dataDeeds is how many kinds of what is done with a data set there are.
const dataDeeds = 8

// Hold returns the number for which Do enters a data set, in one of the ways in which it can be
// held.
func Hold(set, way uint64) uint64 { return set + Sets*(way%4) }

// Drop returns the number for which Do takes a data set out.
func Drop(set uint64) uint64 { return set + Sets*4 }

// Do does what a number says at a site. It reports which data set this holds now that nobody may
// copy, if it does: who waits for one waits for its holder.
func (w *Data) Do(at int, which uint64) (set uint64, closed bool) {
	set = part(&which, Sets)
	name, size := SetName(set)
	token, a := dataTokens+uint64(len(w.asked)), &ask{name: name}
	w.asked[token] = a
	switch deed := part(&which, dataDeeds); deed {
	case 0, 1, 2, 3: // held in each of several ways
		a.set = &dataset.Set{DataSet: grid.DataSet{Name: name, Size: size}, Path: "/data/" + name, Shared: deed != 2}
		if deed == 3 {
			a.set.Size++
		}
		w.say(at, a)
		w.N.Step(at, &dataset.Hold{Token: token, Set: *a.set})
		return set, deed == 2
	case 4, 5:
		a.drop = true
		w.say(at, a)
		w.N.Step(at, &dataset.Drop{Token: token, Name: name})
	case 6: // files of a job, for those to whom it may go
		local := w.N.Clock(at).Local(w.N.Now())
		w.N.Step(at, &dataset.Lend{Name: dataset.TreeName(fmt.Sprintf("%064x", set)), Size: size, Until: local + lentSpan*grid.Time(1+part(&which, Sets))})
	default:
		w.N.Step(at, &dataset.Find{Token: token, Name: name})
	}
	return set, false
}

// say notes that a site may hold something else from now on.
func (w *Data) say(at int, a *ask) { w.changed[at][a.name], w.look[at] = true, true }

// fault looks again at who comes up.
func (w *Data) fault(_ grid.Time, f *testnet.Fault) {
	if !f.Kind.Kills() || !f.Healing() {
		return
	}
	at := f.Sites[0]
	w.look[at] = true
	for number := range uint64(Sets) {
		if name, _ := SetName(number); f.Kind == testnet.FaultOld {
			w.changed[at][name] = true
		}
	}
}

// turn looks at what a site holds, when that may have changed.
func (w *Data) turn(now grid.Time, at int) {
	if w.look[at] {
		w.read(now, at)
	}
}

func (w *Data) read(now grid.Time, at int) {
	s, up := scenario.SiteAt(w.N, at)
	if !up {
		return
	}
	w.look[at] = false
	for number := range uint64(Sets) {
		name, _ := SetName(number)
		set, holds := s.DataSet(name)
		was := w.now(at, name)
		if holds == (was != nil) && (!holds || was.size == set.Size && was.shared == set.Shared) {
			continue
		}
		if !w.changed[at][name] {
			w.Checks.Violated("%s was to hold %s (%+v), and holds %t, %+v", w.N.ID(at), name, was, holds, set)
		}
		if was != nil {
			was.to = now
		}
		if holds {
			w.held[at][name] = append(w.held[at][name], term{now, grid.Never, set.Size, set.Shared})
		}
	}
	clear(w.changed[at])
}

// now returns what a site holds as one that has not ended, nil if nothing.
func (w *Data) now(at int, name string) *term {
	if terms := w.held[at][name]; len(terms) > 0 && terms[len(terms)-1].to == grid.Never {
		return &terms[len(terms)-1]
	}
	return nil
}

func (w *Data) answer(now grid.Time, at int, a grid.Answer) {
	of := w.asked[a.Token]
	if of == nil {
		return
	}
	switch v := a.Value.(type) {
	case *dataset.Held:
		if v.Err != nil {
			return
		}
		w.read(now, at)
		holds := w.now(at, of.name)
		switch {
		case of.drop && holds != nil:
			w.Checks.Violated("%s was told that it holds %s no more, and does", w.N.ID(at), of.name)
		case of.set != nil && (holds == nil || holds.size != of.set.Size || holds.shared != of.set.Shared):
			w.Checks.Violated("%s was told that it holds %s, and has %+v", w.N.ID(at), of.name, holds)
		case of.set != nil:
			w.counts.Held++
		}
	case *dataset.Found:
		if v.Err == nil {
			w.counts.Found++
			w.found(now, at, of.name, v)
		}
	}
}

// found compares who is said to hold a data set with who does.
func (w *Data) found(now grid.Time, at int, name string, f *dataset.Found) {
	said := make(map[grid.SiteID]bool)
	for _, h := range f.Holders {
		other, known := w.N.Index(h.Site)
		if said[h.Site] || !known {
			w.Checks.Violated("%s is told of a holder of %s, %s, that is none, or twice", w.N.ID(at), name, h.Site)
			continue
		}
		said[h.Site] = true
		w.read(now, other)
		if !w.Set(at) && !slices.ContainsFunc(w.held[other][name], func(t term) bool {
			return t.to > now-staleMost && t.size == h.Size && t.shared == h.Shared
		}) {
			w.Checks.Violated("%s is told that %s holds %s, of %d bytes (shared: %t), and it has had %+v", w.N.ID(at), h.Site, name, h.Size, h.Shared, w.held[other][name])
		}
	}
	if f.Silent > 0 || !w.Whole(now, at, heldLeast) || w.ever(name) > dataset.HoldersMax {
		return // no more are asked
	}
	for other := range w.N.Len() {
		t := w.now(other, name)
		if t != nil && t.from < now-heldLeast && !said[w.N.ID(other)] && w.Whole(now, other, heldLeast) {
			w.Checks.Violated("%s is told who holds %s, and not of %s, which has held it since %v", w.N.ID(at), name, w.N.ID(other), t.from)
		}
	}
}

// ever returns how many sites have held a data set.
func (w *Data) ever(name string) (sites int) {
	for at := range w.N.Len() {
		if len(w.held[at][name]) > 0 {
			sites++
		}
	}
	return sites
}

// start looks where a job begins that reads data sets.
func (w *Data) start(now grid.Time, x *testnet.Execution) {
	if len(x.Job.Inputs) == 0 {
		return
	}
	w.counts.Read++
	since := x.Job.Submit - heldLeast
	if !w.Certain || !w.all(now, now-since) {
		return
	}
	for i := range x.Job.Inputs {
		in := &x.Job.Inputs[i]
		holders, bound := w.only(in, since)
		if !bound {
			continue
		}
		w.counts.Bound++
		if !slices.Contains(holders, x.Site) {
			w.Checks.Violated("job %s, epoch %d, begins at %s, and reads %s, which nobody may copy, and which %v have held since before it came", x.Job.ID, x.ID.Epoch, w.N.ID(x.Site), in.Name, holders)
		}
	}
}

// only returns who has held a data set since an instant, if nobody may copy it and nothing of that
// has changed since.
func (w *Data) only(in *grid.DataSet, since grid.Time) (holders []int, bound bool) {
	size := in.Size
	for at := range w.N.Len() {
		terms := w.held[at][in.Name]
		if len(terms) == 0 {
			continue
		}
		t := terms[len(terms)-1]
		switch {
		case t.from > since, t.to != grid.Never && t.to > since:
			return nil, false
		case t.to != grid.Never:
			continue
		case size == grid.SizeUnknown:
			size = t.size
		}
		if t.size != size || t.shared {
			return nil, false
		}
		holders = append(holders, at)
	}
	return holders, len(holders) > 0
}
