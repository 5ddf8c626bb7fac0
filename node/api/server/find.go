package server

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"gridnode/directory"
	"gridnode/directory/record"
	"gridnode/grid"
	"gridnode/node/api"
	"gridnode/node/site"
)

// finder finds sites by what users call them.
type finder struct{ *Server }

// errNobody is the answer wherever a site is named that nobody knows.
func errNobody(text string) error {
	return errorf(api.CodeNotFound, "no site is called %q: 'gridnode sites' lists those that are known", text)
}

// errSearch is the answer wherever a site cannot be looked for.
func errSearch(text string, err error) error {
	return errorf(api.CodeBusy, "%q cannot be looked for: %v; ask again later", text, err)
}

// findSite answers GET /v1/sites/find: who a name or an ID stands for, whoever knows it.
func (f finder) findSite(w http.ResponseWriter, r *http.Request) error {
	text := r.URL.Query().Get("name")
	if text == "" {
		return errorf(api.CodeUsage, "name: which site is to be found? Give its name or ID")
	}
	known, err := f.known(r.Context(), text)
	if err != nil {
		return err
	}
	found, err := f.search(r.Context(), text)
	if err != nil {
		return err
	}
	reply := api.FindSiteReply{Asked: found.Asked, Answered: found.Answered}
	for _, r := range found.Records {
		reply.Sites = append(reply.Sites, f.infoOf(r))
	}
	for i := range known {
		if !slices.ContainsFunc(reply.Sites, func(s api.FoundSite) bool { return s.ID == known[i].ID }) {
			reply.Sites = append(reply.Sites, known[i])
		}
	}
	if i := slices.IndexFunc(reply.Sites, func(s api.FoundSite) bool { return s.ID == text }); i >= 0 {
		reply.Sites = reply.Sites[i : i+1] // an ID stands for its site, whoever claims it as a name
	}
	switch {
	case len(reply.Sites) == 0 && found.Err != nil:
		return errSearch(text, found.Err)
	case len(reply.Sites) == 0:
		return errNobody(text)
	}
	slices.SortFunc(reply.Sites, func(a, b api.FoundSite) int { return cmp.Compare(a.ID, b.ID) })
	reply.Clash = len(reply.Sites) > 1
	return writeJSON(w, reply)
}

// siteNamed returns the ID of the site that text names: an ID, or a name that one site
// only has. A site that neither is this one nor is listed by the index is looked for by its
// record.
func (a *Server) siteNamed(ctx context.Context, text string) (grid.SiteID, error) {
	return finder{a}.named(ctx, text)
}

func (f finder) named(ctx context.Context, text string) (grid.SiteID, error) {
	if text == "" || text == string(f.host.ID()) {
		return grid.SiteID(text), nil
	}
	known, err := f.known(ctx, text)
	if err != nil {
		return "", err
	}
	var ids []grid.SiteID
	for i := range known {
		ids = append(ids, grid.SiteID(known[i].ID))
	}
	answer, err := f.host.Ask(ctx, func(token uint64) grid.Input { return &record.Meant{Token: token, Text: text, Known: ids} })
	if err != nil {
		return "", err
	}
	switch m := answer.(*record.Meaning); {
	case m.Site != "":
		return m.Site, nil
	case m.Was != "":
		return "", errorf(api.CodeUsage, "%q stood for site %s, and now %s claims it: say which by its ID", text, m.Was, m.Sites[0])
	case len(m.Sites) > 0:
		return "", errorf(api.CodeUsage, "%d sites are called %q: say which by its ID: %s", len(m.Sites), text, m.Sites)
	case m.Err != nil:
		return "", errSearch(text, m.Err)
	}
	return "", errNobody(text)
}

// known returns the sites that text names: this one, and those that the index lists.
func (f finder) known(ctx context.Context, text string) (sites []api.FoundSite, err error) {
	found, err := f.find(ctx, directory.Query{Attribute: directory.Price}, rowsMax)
	if err != nil {
		return nil, err
	}
	if err := f.host.Do(ctx, func(s *site.Site) {
		offer := s.Offer()
		found.quotes = append([]directory.Quote{offer}, slices.DeleteFunc(found.quotes, func(q directory.Quote) bool { return q.Site == offer.Site })...)
	}); err != nil {
		return nil, err
	}
	for i := range found.quotes {
		q := &found.quotes[i]
		if string(q.Site) != text && q.Name != text {
			continue
		}
		sites = append(sites, api.FoundSite{
			ID: string(q.Site), Name: q.Name, Self: q.Site == f.host.ID(), Source: "quote", Services: servicesOf(q), Addresses: []string{},
			Processors: q.Processors, Memory: q.Memory, Speed: q.Speed, Bandwidth: q.Bandwidth, Sequence: q.Sequence, Issued: api.Instant(q.Issued),
		})
		if q.Issued != 0 {
			sites[len(sites)-1].Expires = api.Instant(q.Expires())
		}
	}
	return sites, nil
}

// servicesOf returns what a quote says of them.
func servicesOf(q *directory.Quote) []string {
	if q.Foreign {
		return record.Runs.Names()
	}
	return []string{}
}

// search looks for the records of those whom text names.
func (f finder) search(ctx context.Context, text string) (*record.Found, error) {
	answer, err := f.host.Ask(ctx, func(token uint64) grid.Input { return &record.Find{Token: token, Text: text} })
	if err != nil {
		return nil, err
	}
	return answer.(*record.Found), nil
}

// infoOf returns what users see of a record.
func (f finder) infoOf(r *record.Record) api.FoundSite {
	return api.FoundSite{
		ID: string(r.Site), Name: r.Name, Self: r.Site == f.host.ID(), Source: "record", Authority: r.Authority,
		Addresses: append([]string{}, r.Addresses...), Services: append([]string{}, r.Services.Names()...),
		Processors: r.Processors, Memory: r.Memory, Speed: r.Speed, Bandwidth: r.Bandwidth,
		Sequence: r.Sequence, Issued: api.Instant(r.Issued), Expires: api.Instant(r.Expires()),
	}
}
