package lease

// SetLinks replaces the neighbours that requests may be delegated to; links are as
// CheckLinks wants them, Kinship.Links returns such. What is under way goes on.
func (m *Matchmaker) SetLinks(links []Link) { m.cfg.Links = links }

// Delegates reports whether jobs of this site may be given processors of others: it has
// a threshold and somebody to ask.
func (m *Matchmaker) Delegates() bool {
	return m.cfg.Threshold > 0 && (len(m.cfg.Links) > 0 || m.cfg.Ordering == OrderGossip && len(m.cfg.Members) > 0)
}
