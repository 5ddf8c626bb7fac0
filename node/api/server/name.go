package server

import (
	"context"
	"net/http"
	"strings"

	"gridnode/grid"
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

// identify returns the jobs that texts name: full IDs, or prefixes that only one
// job of this site has. Each must be known.
func (a *Server) identify(ctx context.Context, texts []string) ([]grid.JobID, error) {
	if len(texts) > idsMax {
		return nil, errorf(api.CodeUsage, "%d jobs named, at most %d", len(texts), idsMax)
	}
	ids := make([]grid.JobID, len(texts))
	var prefixes []int // indices of texts
	for i, text := range texts {
		id, err := grid.ParseJobID(text)
		if err == nil {
			ids[i] = id
			continue
		}
		if _, ok := parseJobPrefix(text); !ok {
			return nil, errorf(api.CodeNotFound, "%q is not the ID of a job: want 26 characters of %s, or the first of them", text, jobIDAlphabet)
		}
		prefixes = append(prefixes, i)
	}
	var failure error
	err := a.host.Do(ctx, func(s *site.Site) {
		for i, text := range texts {
			if _, known := s.Job(ids[i]); !known && !ids[i].IsZero() {
				failure = errorf(api.CodeNotFound, "no job %s here", text)
			}
		}
		for _, i := range prefixes {
			if failure == nil {
				ids[i], failure = uniqueJob(s, texts[i])
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return ids, failure
}

// uniqueJob returns the only job whose ID begins with text.
func uniqueJob(s *site.Site, text string) (found grid.JobID, err error) {
	prefix, _ := parseJobPrefix(text)
	n := 0
	for v := range s.Jobs {
		if prefix.match(v.Job.ID) {
			found = v.Job.ID
			n++
		}
	}
	switch n {
	case 0:
		return found, errorf(api.CodeNotFound, "no job %s here", text)
	case 1:
		return found, nil
	}
	return found, errorf(api.CodeUsage, "%d jobs begin with %s: use more of the ID", n, text)
}

// named returns the jobs that the body of a request names: by ID, each once in
// order, then by name those that are not over.
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
	for _, name := range request.Names {
		before := len(out)
		err := a.host.Do(r.Context(), func(s *site.Site) {
			for v := range s.Jobs {
				if !v.Foreign && !v.State.Terminal() && named(v.Job.Name, name) {
					add(v.Job.ID)
				}
			}
		})
		if err != nil {
			return nil, nil, err
		}
		if len(out) == before {
			return nil, nil, errorf(api.CodeNotFound, "no job called %q that is not over", name)
		}
	}
	return &request, out, nil
}
