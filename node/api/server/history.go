package server

import (
	"encoding/json"
	"net/http"
	"net/url"

	"gridnode/grid"
	"gridnode/node/access"
	"gridnode/node/api"
	"gridnode/node/history"
)

// ledger answers what is asked of the job log.
type ledger struct{ *Server }

// history streams the lines of the job log that are asked for, oldest first.
func (a ledger) history(w http.ResponseWriter, r *http.Request) error {
	filter, err := historyFilter(r.URL.Query())
	switch {
	case err != nil:
		return err
	case !a.host.KeepsHistory():
		return errorf(api.CodeRefused, "this daemon keeps no job log: set history.files to 2 or more")
	}
	who := askerOf(r.Context())
	w.Header().Set("Content-Type", api.MediaLines)
	w.Header().Set("Trailer", api.TrailerError)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	err = a.host.History(r.Context(), func(text []byte) bool {
		line, err := history.Parse(text)
		if err != nil || !filter.Match(&line) {
			return true // what is no line is not shown
		}
		shown, yes := a.shown(who, filter, &line)
		return !yes || encoder.Encode(shown) == nil
	})
	if err != nil { // too late for a status: the end of the stream says it
		failure := failureOf(err)
		w.Header().Set(api.TrailerError, failure.Code+" "+failure.Message)
	}
	return nil
}

// shown returns what an asker sees of a line, and whether that is anything.
func (a ledger) shown(who asker, filter *history.Filter, l *history.Line) (api.HistoryLine, bool) {
	if who.reach == access.Yes || !l.Foreign && l.User == who.Name {
		return historyLine(l), true
	}
	switch a.cfg.People.See {
	case access.Full:
		return historyLine(l), true
	case access.Hidden:
		return api.HistoryLine{}, false
	}
	whole := historyLine(l)
	asked := filter.User != "" || filter.Job != "" || filter.Site != "" || filter.Org != "" // then it would tell what is not shown
	return api.HistoryLine{
		Seq: whole.Seq, Kind: whole.Kind, Origin: whole.Origin, Brief: true, ID: whole.ID, Processors: whole.Processors,
		Submitted: whole.Submitted, Start: whole.Start, End: whole.End, Used: whole.Used, State: whole.State,
	}, !asked
}

func historyFilter(values url.Values) (*history.Filter, error) {
	f := &history.Filter{Site: values.Get("site"), Org: values.Get("org"), User: values.Get("user"), Job: values.Get("job"), Kind: history.Kind(values.Get("kind"))}
	for name, at := range map[string]*grid.Time{"since": &f.Since, "until": &f.Until} {
		text := values.Get(name)
		if text == "" {
			continue
		}
		quoted, _ := json.Marshal(text) // a string
		if err := (*api.Instant)(at).UnmarshalJSON(quoted); err != nil {
			return nil, errorf(api.CodeUsage, "%s: %v", name, err)
		}
	}
	switch origin := values.Get("origin"); origin {
	case "own":
		f.Own = true
	case "foreign":
		f.Foreign = true
	case "":
	default:
		return nil, errorf(api.CodeUsage, "origin: %q, want own or foreign", origin)
	}
	if f.Kind != "" && f.Kind != history.Job && f.Kind != history.Lease {
		return nil, errorf(api.CodeUsage, "kind: %q, want job or lease", f.Kind)
	}
	return f, nil
}

func historyLine(l *history.Line) api.HistoryLine {
	line := api.HistoryLine{
		Seq: l.Seq, Kind: string(l.Kind), Origin: "own", ID: l.ID, Epoch: l.Epoch, Number: l.Number, Name: l.Name, User: l.User,
		Home: string(l.Home), HomeName: l.HomeName, Site: string(l.Site), SiteName: l.SiteName, Organisation: l.Org, Sites: texts(l.Sites),
		Processors: l.Processors, GPUs: l.GPUs, Submitted: api.Instant(l.Submitted), Start: api.Instant(l.Start), End: api.Instant(l.End),
		Used: api.Seconds(l.Used), Price: api.Amount(l.Price), Cost: api.Amount(l.Cost), Bank: string(l.Bank), BankName: l.BankName,
		State: l.State, ExitCode: l.Exit, Reason: l.Reason,
	}
	if l.Foreign {
		line.Origin = "foreign"
	}
	return line
}

// texts returns sites as the API names them.
func texts(ids []grid.SiteID) (list []string) {
	for _, id := range ids {
		list = append(list, string(id))
	}
	return list
}
