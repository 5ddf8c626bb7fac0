package workload

// Merge is several sources as one. Jobs come in order of submission; jobs
// submitted at the same instant come in order of their sources. A job's Site is
// the index of its source. One job of each source is held, so N sources cost
// O(log N) a job.
type Merge struct {
	sources []Source
	heads   []Job // binary heap
	failed  error
	started bool
}

// NewMerge returns the union of sources.
func NewMerge(sources ...Source) *Merge {
	return &Merge{sources: sources, heads: make([]Job, 0, len(sources))}
}

// Next implements Source. The first error of any source ends the stream.
func (m *Merge) Next(job *Job) (bool, error) {
	if !m.started {
		m.start()
	}
	if m.failed != nil || len(m.heads) == 0 {
		return false, m.failed
	}
	*job = m.heads[0]
	site := job.Site
	ok, err := m.sources[site].Next(&m.heads[0])
	m.heads[0].Site = site
	if err != nil {
		m.failed = err // the job in hand is sound; the error comes with the next call
	}
	if !ok {
		last := len(m.heads) - 1
		m.heads[0] = m.heads[last]
		m.heads = m.heads[:last]
	}
	m.down(0)
	return true, nil
}

func (m *Merge) start() {
	m.started = true
	for site, source := range m.sources {
		var job Job
		ok, err := source.Next(&job)
		if err != nil {
			m.failed = err
			return
		}
		if ok {
			job.Site = site
			m.heads = append(m.heads, job)
		}
	}
	for i := len(m.heads)/2 - 1; i >= 0; i-- {
		m.down(i)
	}
}

func (m *Merge) before(i, j int) bool {
	a, b := &m.heads[i], &m.heads[j]
	return a.Submit < b.Submit || a.Submit == b.Submit && a.Site < b.Site
}

func (m *Merge) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(m.heads) {
			return
		}
		if child+1 < len(m.heads) && m.before(child+1, child) {
			child++
		}
		if !m.before(child, i) {
			return
		}
		m.heads[i], m.heads[child] = m.heads[child], m.heads[i]
		i = child
	}
}
