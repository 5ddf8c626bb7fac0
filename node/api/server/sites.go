package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/node"
	"gridnode/node/api"
	"gridnode/node/site"
)

// sites lists this site and those the directory knows.
func (a *Server) sites(w http.ResponseWriter, r *http.Request) error {
	found, err := a.find(r.Context(), directory.Query{Attribute: directory.Price}, rowsMax)
	if err != nil {
		return err
	}
	reply := found.reply()
	err = a.host.Do(r.Context(), func(s *site.Site) {
		self := s.Offer()
		reply.Sites = append(reply.Sites, a.siteInfo(s, &self))
		for i := range found.quotes {
			if q := &found.quotes[i]; q.Site != self.Site {
				reply.Sites = append(reply.Sites, a.siteInfo(s, q))
			}
		}
		a.latencies(s, reply.Sites)
	})
	if err != nil {
		return err
	}
	markSilent(r.Context(), a.host, reply.Sites)
	return writeJSON(w, reply)
}

// recent is for how long a site of which something was heard is not asked whether it is there.
const recent = 30 * grid.Second

// markSilent marks the sites that do not answer. Those are asked first of which nothing was
// heard for longest.
func markSilent(ctx context.Context, host *node.Host, sites []api.SiteInfo) {
	var ask []*api.SiteInfo
	for i := range sites {
		if s := &sites[i]; !s.Self && grid.Time(s.Issued).Add(recent) <= host.Now() {
			ask = append(ask, s)
		}
	}
	slices.SortFunc(ask, func(a, b *api.SiteInfo) int { return cmp.Compare(a.Issued, b.Issued) })
	ids := make([]grid.SiteID, len(ask))
	for i, s := range ask {
		ids[i] = grid.SiteID(s.ID)
	}
	silent := host.Silent(ctx, ids)
	for _, s := range ask {
		s.Silent = slices.Contains(silent, grid.SiteID(s.ID))
	}
}

// quotes asks the directory for a range.
func (a *Server) quotes(w http.ResponseWriter, r *http.Request) error {
	query, priceMax, byFree, limit, err := quotesQuery(r.URL.Query())
	if err != nil {
		return errorf(api.CodeUsage, "%v", err)
	}
	fetch := limit
	if byFree {
		fetch = rowsMax // the directory has no order by what changes all the time
	}
	found, err := a.find(r.Context(), query, fetch)
	if err != nil {
		return err
	}
	if byFree {
		slices.SortStableFunc(found.quotes, func(a, b directory.Quote) int { return cmp.Compare(b.Free, a.Free) })
		found.quotes = found.quotes[:min(limit, len(found.quotes))]
	}
	reply := found.reply()
	err = a.host.Do(r.Context(), func(s *site.Site) {
		for i := range found.quotes {
			if q := &found.quotes[i]; q.Price <= priceMax {
				reply.Sites = append(reply.Sites, a.siteInfo(s, q))
			}
		}
	})
	if err != nil {
		return err
	}
	return writeJSON(w, reply)
}

// quotesQuery reads the parameters of GET /v1/quotes. byFree says that those with most
// free processors are to come first.
func quotesQuery(values url.Values) (query directory.Query, priceMax grid.Price, byFree bool, limit int, err error) {
	priceMax, limit = grid.CreditsMax, rowsMax
	if text := values.Get("maxPrice"); text != "" {
		if priceMax, err = grid.ParseCredits(text); err != nil {
			return query, 0, false, 0, fmt.Errorf("maxPrice: %w", err)
		}
		query.Filter.PriceMax = max(priceMax, 1) // 0 would let every price through
	}
	rows := int64(limit)
	for _, p := range []struct {
		name string
		into *int64
		low  int64
		high int64
	}{
		{"minSpeed", &query.Filter.SpeedMin, 0, grid.RatingMax},
		{"cpus", &query.Filter.ProcessorsMin, 0, 1 << 24},
		{"free", &query.Filter.FreeMin, 0, 1 << 24},
		{"limit", &rows, 1, rowsMax},
	} {
		text := values.Get(p.name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < p.low || n > p.high {
			return query, 0, false, 0, fmt.Errorf("%s: %q, want a whole number from %d to %d", p.name, text, p.low, p.high)
		}
		*p.into = n
	}
	if text := values.Get("gpus"); text != "" {
		if query.Filter.GPUs, err = grid.ParseGPUs(text); err != nil {
			return query, 0, false, 0, fmt.Errorf("gpus: %w", err)
		}
	}
	switch sort := values.Get("sort"); sort {
	case "", "price":
		query.Attribute = directory.Price
	case "speed":
		query.Attribute, query.Descending = directory.Speed, true
	case "free":
		byFree = true
	default:
		return query, 0, false, 0, fmt.Errorf("sort: %q, want price, speed or free", sort)
	}
	return query, priceMax, byFree, int(rows), nil
}

// foundQuotes is what several queries for the pages of one list have found.
type foundQuotes struct {
	quotes   []directory.Quote
	messages int32
	certain  bool
}

// reply returns the answer to a client, without the sites.
func (f *foundQuotes) reply() api.SitesReply {
	return api.SitesReply{Sites: []api.SiteInfo{}, Messages: f.messages, Certain: f.certain}
}

// find asks the directory page by page for up to limit quotes.
func (a *Server) find(ctx context.Context, query directory.Query, limit int) (*foundQuotes, error) {
	all := &foundQuotes{certain: true}
	for {
		query.Limit = min(limit-len(all.quotes), directory.LimitMax)
		answer, err := a.host.Ask(ctx, func(token uint64) grid.Input { return &site.FindQuotes{Token: token, Query: query} })
		if err != nil {
			return nil, err
		}
		found := answer.(*directory.Found)
		all.messages += found.Messages
		all.certain = all.certain && found.Certain
		if found.Err != nil && len(found.Quotes) == 0 && len(all.quotes) == 0 {
			return nil, errorf(api.CodeInternal, "the directory did not answer: %v; ask again later", found.Err)
		}
		all.quotes = append(all.quotes, found.Quotes...)
		if found.End || found.Err != nil || len(found.Quotes) == 0 || len(all.quotes) >= limit {
			return all, nil
		}
		query.After = directory.Behind(&all.quotes[len(all.quotes)-1], query.Attribute)
	}
}

// siteInfo returns what users see of a quote. It is called on the host's loop.
func (a *Server) siteInfo(s *site.Site, q *directory.Quote) api.SiteInfo {
	info := api.SiteInfo{
		ID: string(q.Site), Name: q.Name, Self: q.Site == a.host.ID(),
		Processors: q.Processors, Free: q.Free, Widest: q.Widest, Wait: api.Seconds(q.Wait),
		Memory: q.Memory, Speed: q.Speed, Bandwidth: q.Bandwidth,
		Price: api.Amount(q.Price), Cost: q.Cost.String(), Foreign: q.Foreign,
		Sequence: q.Sequence, Issued: api.Instant(q.Issued), GPUs: gpusOf(q.GPUs), GPUWeight: q.GPUWeight,
	}
	if q.Issued != 0 {
		info.Expires = api.Instant(q.Expires())
	}
	if load, ok := s.Load(q.Site); ok {
		info.Queued, info.Head = load.Queued, string(load.Headed.Head)
		if load.Issued > q.Issued {
			info.Free, info.Widest, info.Wait, info.Issued = load.Free, load.Widest, api.Seconds(load.Wait), api.Instant(load.Issued)
		}
	}
	return info
}

// gpusOf returns what users see of the GPUs of a site.
func gpusOf(stock grid.GPUStock) (list []api.GPUs) {
	for _, c := range stock {
		list = append(list, api.GPUs{Type: c.Type, Count: c.Count, Free: c.Free})
	}
	return list
}

func (a *Server) peers(w http.ResponseWriter, r *http.Request) error {
	reply := api.PeersReply{Peers: []api.Peer{}}
	peers := a.host.Peers(r.Context())
	err := a.host.Do(r.Context(), func(s *site.Site) {
		for _, p := range peers {
			q, _ := s.Known(p.Site)
			used := a.host.Warden().Usage(p.Site)
			reply.Peers = append(reply.Peers, api.Peer{
				ID: string(p.Site), Name: q.Name, Address: p.Addr, Inbound: p.Inbound, Since: api.InstantOf(p.Since),
				Latency: api.Seconds(grid.FromDuration(p.Latency)), Agent: p.Agent, Member: p.Member, Kind: string(p.Kind), Relay: string(p.Relay), Punched: p.Punched,
				Messages: used.Messages, Bytes: used.Bytes, Held: used.Held,
			})
		}
	})
	if err != nil {
		return err
	}
	return writeJSON(w, reply)
}

func (a *Server) counters(w http.ResponseWriter, _ *http.Request) error {
	counter := a.host.Counter()
	net := a.host.Net()
	reply := api.CountersReply{Messages: []api.MessageCount{}, Malformed: counter.Malformed, Network: api.NetworkCounters{
		Held: net.Throttled, Refused: net.Refused, Busy: net.Busy, Bans: net.Banned,
	}}
	for k := grid.Kind(0); k < wire.KindMax; k++ {
		sent, received := counter.SentOf(k), counter.ReceivedOf(k)
		if sent.Messages+received.Messages > 0 {
			reply.Messages = append(reply.Messages, api.MessageCount{
				Kind: wire.KindName(k), Sent: sent.Messages, SentBytes: sent.Bytes, Received: received.Messages, ReceivedBytes: received.Bytes,
			})
		}
	}
	return writeJSON(w, reply)
}
