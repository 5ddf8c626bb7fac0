package server

import (
	"cmp"
	"context"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gridnode/grid"
	"gridnode/node/access"
	"gridnode/node/api"
	"gridnode/node/site"
)

// jobPrefix is the beginning of a job ID as users type it.
type jobPrefix struct {
	hi, lo         uint64 // value, bits outside the mask 0
	maskHi, maskLo uint64
}

const jobIDAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// parseJobPrefix reads up to 25 characters of an ID, in either case.
func parseJobPrefix(text string) (p jobPrefix, ok bool) {
	if text == "" || len(text) > 25 {
		return p, false
	}
	shift := 128
	for _, r := range strings.ToLower(text) {
		digit := strings.IndexRune(jobIDAlphabet, r)
		if digit < 0 {
			return p, false
		}
		shift -= 5
		p.put(uint64(digit), 31, shift)
	}
	return p, true
}

// put sets five bits at shift, which may lie across the middle.
func (p *jobPrefix) put(digit, mask uint64, shift int) {
	if shift >= 64 {
		p.hi |= digit << (shift - 64)
		p.maskHi |= mask << (shift - 64)
		return
	}
	p.lo |= digit << shift
	p.maskLo |= mask << shift
	p.hi |= digit >> (64 - shift)
	p.maskHi |= mask >> (64 - shift)
}

func (p *jobPrefix) match(id grid.JobID) bool {
	return id.Hi&p.maskHi == p.hi && id.Lo&p.maskLo == p.lo
}

// identify returns the jobs that texts name: full IDs, prefixes that only one job of this
// site has, and numbers. The number of an array, and 12_[0-4] of one, are several jobs. Each
// must be known.
func (a *Server) identify(ctx context.Context, texts []string) ([]grid.JobID, error) {
	if len(texts) > idsMax {
		return nil, errorf(api.CodeUsage, "%d jobs named, at most %d", len(texts), idsMax)
	}
	found := make([][]grid.JobID, len(texts))
	var rest []int // indices of texts that are no full IDs
	for i, text := range texts {
		id, err := grid.ParseJobID(text)
		if err == nil {
			found[i] = []grid.JobID{id}
			continue
		}
		if _, ok := parseJobPrefix(text); !ok && !isNumber(text) {
			return nil, errorf(api.CodeNotFound, "%q is not the ID of a job: want 26 characters of %s, or the first of them, or its number", text, jobIDAlphabet)
		}
		rest = append(rest, i)
	}
	var failure error
	who := askerOf(ctx)
	visible := func(v *site.View) bool { return a.sight(who, v) != access.Hidden }
	err := a.host.Do(ctx, func(s *site.Site) {
		for i, text := range texts {
			for _, id := range found[i] {
				if v, known := s.Glance(id); !known || !visible(&v) {
					failure = errorf(api.CodeNotFound, "no job %s here", text)
				}
			}
		}
		var all census
		for _, i := range rest {
			if failure == nil {
				found[i], failure = all.of(s, visible).find(texts[i])
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return slices.Concat(found...), failure
}

// census is the visible jobs of a site by what users call them, made when it is first needed.
type census struct {
	made    bool
	ids     []grid.JobID
	numbers map[uint64]grid.JobID
	arrays  map[uint64][]element // by index
}

type element struct {
	index int64
	id    grid.JobID
}

func (c *census) of(s *site.Site, visible func(*site.View) bool) *census {
	if c.made {
		return c
	}
	*c = census{made: true, numbers: make(map[uint64]grid.JobID), arrays: make(map[uint64][]element)}
	for v := range s.Jobs {
		if !visible(&v) {
			continue
		}
		j := v.Job
		c.ids = append(c.ids, j.ID)
		if v.Foreign {
			continue // its number is one of its home
		}
		if j.Number > 0 {
			c.numbers[j.Number] = j.ID
		}
		if a := j.Array; a != nil && a.Number > 0 {
			c.arrays[a.Number] = append(c.arrays[a.Number], element{a.Index, j.ID})
		}
	}
	return c
}

// numberForm is a number as Slurm's commands take it: of a job, or of jobs of an array.
var numberForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([1-9][0-9]{0,17})(?:_([0-9]{1,9})|_\[([0-9,:-]{1,200})(?:%[0-9]+)?\])?$`)
})

func isNumber(text string) bool { return numberForm().MatchString(text) }

// prefixDigits is from how many digits on a number is first taken for the beginning of an
// ID: so many characters of it are shown in tables.
const prefixDigits = 8

// find returns the jobs that a text names which is no full ID.
func (c *census) find(text string) ([]grid.JobID, error) {
	ids := c.begin(text)
	if m := numberForm().FindStringSubmatch(text); m != nil && (len(text) < prefixDigits || len(ids) == 0) {
		number, _ := strconv.ParseUint(m[1], 10, 64) // at most 18 digits
		if some := c.numbered(number, m[2]+m[3]); len(some) > 0 {
			return some, nil
		}
	}
	switch len(ids) {
	case 0:
		return nil, errorf(api.CodeNotFound, "no job %s here", text)
	case 1:
		return ids, nil
	}
	return nil, errorf(api.CodeUsage, "%d jobs begin with %s: use more of the ID", len(ids), text)
}

// begin returns the jobs whose IDs begin with text.
func (c *census) begin(text string) (ids []grid.JobID) {
	prefix, ok := parseJobPrefix(text)
	if !ok {
		return nil
	}
	for _, id := range c.ids {
		if prefix.match(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// numbered returns the job of a number, or those of an array, all or the ones of indices.
func (c *census) numbered(number uint64, indices string) (ids []grid.JobID) {
	elements := c.arrays[number]
	if len(elements) == 0 {
		if id, there := c.numbers[number]; there && indices == "" {
			return []grid.JobID{id}
		}
		return nil
	}
	slices.SortFunc(elements, func(a, b element) int { return cmp.Compare(a.index, b.index) })
	for _, e := range elements {
		if indices == "" || among(e.index, indices) {
			ids = append(ids, e.id)
		}
	}
	return ids
}

// among reports whether an index is in a list like 1,3-5 or 0-20:2.
func among(index int64, list string) bool {
	for part := range strings.SplitSeq(list, ",") {
		span, stepText, _ := strings.Cut(part, ":")
		from, to, ranged := strings.Cut(span, "-")
		first, err := strconv.ParseInt(from, 10, 64)
		last, step := first, int64(1)
		if ranged {
			last, _ = strconv.ParseInt(to, 10, 64)
		}
		if n, err := strconv.ParseInt(stepText, 10, 64); err == nil && n > 0 {
			step = n
		}
		if err == nil && index >= first && index <= last && (index-first)%step == 0 {
			return true
		}
	}
	return false
}

// named returns the jobs that the body of a request names: by ID, each once in
// order, then by name those that are not over: the asker's own, or else those of others, if
// the call may be about them.
func (a *Server) named(r *http.Request) (*api.IDsRequest, []grid.JobID, error) {
	var request api.IDsRequest
	if err := readJSON(r, &request); err != nil {
		return nil, nil, err
	}
	if len(request.IDs)+len(request.Names) == 0 {
		return nil, nil, errorf(api.CodeUsage, "no jobs named")
	}
	ids, err := a.identify(r.Context(), request.IDs)
	if err != nil {
		return nil, nil, err
	}
	seen := make(map[grid.JobID]bool)
	var out []grid.JobID
	add := func(id grid.JobID) {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	for _, id := range ids {
		add(id)
	}
	who := askerOf(r.Context())
	for _, name := range request.Names {
		before := len(out)
		var others []grid.JobID
		err := a.host.Do(r.Context(), func(s *site.Site) {
			for v := range s.Jobs {
				switch {
				case v.Foreign || v.State.Terminal() || !named(v.Job.Name, name):
				case mine(who, &v):
					add(v.Job.ID)
				case who.reach == access.Yes:
					others = append(others, v.Job.ID)
				}
			}
		})
		if len(out) == before { // the asker's own go first: others' are meant only if there are none
			for _, id := range others {
				add(id)
			}
		}
		if err != nil {
			return nil, nil, err
		}
		if len(out) == before {
			return nil, nil, errorf(api.CodeNotFound, "no job called %q that is not over", name)
		}
	}
	return &request, out, nil
}
