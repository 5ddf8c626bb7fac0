package server

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/node"
	"gridnode/node/access"
	"gridnode/node/api"
	"gridnode/node/api/openapi"
	"gridnode/node/api/server/peer"
	"gridnode/node/api/server/stream"
	"gridnode/node/guest"
	"gridnode/node/logging"
	"gridnode/node/metrics"
	"gridnode/node/quota"
	"gridnode/node/run"
	"gridnode/node/site"
	"gridnode/node/wasm"
)

// Config is what the server is told.
type Config struct {
	Rating     grid.Rating // of this site
	Defaults   Defaults
	Federation string
	Version    string

	People *access.People    // who is what here; nil: the daemon's account and root are admins
	Tokens *access.Tokens    // of those who come through ServeTLS; nil: nobody does
	Hosts  func(string) bool // reports whether ServeTLS is asked for by a name of its own
	Pages  *access.Tokens    // of those whom the page knows; nil: there is no page
	Visits bool              // people of other members may look at the page

	ReadOnly string // why nothing can be changed here, as whoever tries is told; empty: it can

	Metrics *metrics.Metrics // for monitoring; nil: it is told nothing

	Logger *slog.Logger // nil discards
	Stop   func()       // called when a user wants the daemon to stop; must not block

	// Reload reads the settings again and returns what has changed; nil: there are none.
	Reload func(context.Context) ([]api.SettingChange, error)

	Levels *logging.Levels // of the log; nil: they stay as they are
	Lines  *logging.Tail   // the last ones of the log; nil: nobody keeps them

	// Backup writes a backup of the site, with its private keys or without; nil: there is
	// nothing to back up. Its errors come before anything is written, or are of the writing.
	Backup func(ctx context.Context, to io.Writer, keys bool) error
}

// Server serves the local API of one host. It decides nothing: it turns requests into
// questions to the host's loop and answers into JSON.
type Server struct {
	cfg     Config
	host    *node.Host
	server  http.Server
	waiters waiters
	changes *stream.Changes
	porter  porter
	desk    *access.Turns // of submissions that are decoded
	hands   *access.Turns // of jobs that are handed to the host
	page    *page
	started time.Time

	stopping context.Context // ends when Close begins: whoever waits is told
	stop     context.CancelFunc
}

// New returns the server of host. Serve it.
func New(host *node.Host, cfg Config) *Server {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.People == nil {
		cfg.People = &access.People{Own: uint32(os.Geteuid()), Root: true}
	}
	a := &Server{cfg: cfg, host: host, porter: porter{cfg: &cfg, shares: access.NewShares(), visitors: new(access.Visitors), welcome: node.VisitsOf(host).Welcome}, started: time.Now(), changes: stream.NewChanges()}
	a.stopping, a.stop = context.WithCancel(context.Background())
	a.desk, a.hands = access.NewTurns(runtime.GOMAXPROCS(0)/2), access.NewTurns(handMax)
	a.waiters.init()
	go a.follow(a.stopping, host.Subscribe())
	a.page = newPage(a)
	if cfg.Visits && cfg.Pages != nil {
		node.VisitsOf(host).Handle(a.page.welcome)
	}
	a.server = http.Server{
		Handler: a.handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		ConnContext: a.porter.withPeer, ErrorLog: slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug),
	}
	return a
}

// Serve answers requests on listener, a Unix socket, until Close. It may be called for
// several listeners.
func (a *Server) Serve(listener net.Listener) error {
	return serve(&a.server, peer.Count(listener))
}

func serve(on *http.Server, listener net.Listener) error {
	if err := on.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("local API: %w", err)
	}
	return nil
}

// ServeTLS answers requests of those who bear a token, on a listener of TCP, until Close.
// Config.Tokens and Config.Hosts must be there.
func (a *Server) ServeTLS(listener net.Listener, config *tls.Config) error {
	if a.cfg.Tokens == nil || a.cfg.Hosts == nil {
		return errors.New("local API: no tokens, or no name of its own")
	}
	return serve(&a.server, tls.NewListener(peer.Count(listener), config))
}

// Close ends waiting requests with CodeUnavailable, gives the others until ctx
// ends, and returns.
func (a *Server) Close(ctx context.Context) error {
	a.stop()
	err := a.server.Shutdown(ctx)
	if err != nil {
		err = a.server.Close()
	}
	return errors.Join(err, a.page.close())
}

// routes is the table of everything the API answers.
func (a *Server) routes() map[string]handler {
	return map[string]handler{
		"POST /v1/jobs":            {a.submit, []string{"wait"}},
		"GET /v1/jobs":             {a.jobs, jobsParameters},
		"GET /v1/jobs/{id}":        {a.job, nil},
		"GET /v1/jobs/{id}/why":    {a.why, nil},
		"GET /v1/jobs/{id}/logs":   {a.logs, []string{"stream", "follow", "tail", "from"}},
		"POST /v1/preview":         {a.preview, nil},
		"POST /v1/cancel":          {a.cancel, nil},
		"POST /v1/wait":            {a.wait, nil},
		"POST /v1/hold":            {changer{a}.change(holdJob), nil},
		"POST /v1/release":         {changer{a}.change(releaseJob), nil},
		"POST /v1/requeue":         {changer{a}.change(requeueJob), nil},
		"GET /v1/watch":            {watching{a, beatSpan}.watch, jobsParameters},
		"GET /v1/sites":            {a.sites, nil},
		"GET /v1/sites/find":       {finder{a}.findSite, []string{"name"}},
		"GET /v1/quotes":           {a.quotes, []string{"maxPrice", "minSpeed", "cpus", "free", "gpus", "limit", "sort"}},
		"GET /v1/peers":            {a.peers, nil},
		"GET /v1/net":              {a.net, nil},
		"GET /v1/peers/bans":       {watch{a}.bans, nil},
		"POST /v1/peers/unban":     {watch{a}.unban, nil},
		"GET /v1/counters":         {a.counters, nil},
		"GET /v1/node":             {a.node, nil},
		"POST /v1/price":           {a.setPrice, nil},
		"GET /v1/bank/balance":     {money{a}.bankBalance, []string{"account", "all"}},
		"GET /v1/bank/statement":   {money{a}.bankStatement, []string{"account", "limit"}},
		"POST /v1/bank/transfer":   {money{a}.bankTransfer, nil},
		"POST /v1/bank/grant":      {money{a}.bankGrant, nil},
		"GET /v1/leases":           {a.leases, []string{"direction"}},
		"POST /v1/leases":          {a.requestLease, nil},
		"POST /v1/leases/renew":    {a.changeLease(site.RenewLease), nil},
		"POST /v1/leases/release":  {a.changeLease(site.ReleaseLease), nil},
		"POST /v1/leases/revoke":   {a.changeLease(site.RevokeLease), nil},
		"GET /v1/links":            {a.links, nil},
		"POST /v1/links/invite":    {a.changeLink(site.InviteLink), nil},
		"POST /v1/links/accept":    {a.changeLink(site.AcceptLink), nil},
		"POST /v1/links/drop":      {a.changeLink(site.DropLink), nil},
		"GET /v1/members":          {a.members, nil},
		"POST /v1/members/invite":  {a.invite, nil},
		"POST /v1/members/revoke":  {a.revoke, nil},
		"POST /v1/members/renew":   {a.renew, nil},
		"POST " + modulesPath:      {a.putModule, nil},
		"POST /v1/content/missing": {jobFiles{a}.missing, nil},
		"POST /v1/content":         {jobFiles{a}.put, nil},
		"POST /v1/trees":           {jobFiles{a}.putTree, nil},
		"GET /v1/jobs/{id}/files":  {jobFiles{a}.list, []string{"wait"}},
		"GET /v1/jobs/{id}/file":   {jobFiles{a}.file, []string{"name"}},
		"GET /v1/datasets":         {holdings{a}.dataSets, nil},
		"POST /v1/datasets":        {holdings{a}.addDataSet, nil},
		"POST /v1/datasets/remove": {holdings{a}.removeDataSet, nil},
		"GET /v1/datasets/find":    {holdings{a}.findDataSet, []string{"name"}},
		"POST /v1/pages":           {a.page.open, nil},
		"GET /v1/tokens":           {tokens{a}.needed(tokens{a}.list), nil},
		"POST /v1/tokens":          {tokens{a}.needed(tokens{a}.create), nil},
		"POST /v1/tokens/revoke":   {tokens{a}.needed(tokens{a}.revoke), nil},
		"GET /v1/users":            {a.users, nil},
		"GET /v1/guests":           {lodge{a}.guests, nil},
		"POST /v1/guests/cancel":   {lodge{a}.change(site.CancelGuest), nil},
		"POST /v1/guests/hold":     {lodge{a}.change(site.HoldGuest), nil},
		"POST /v1/guests/release":  {lodge{a}.change(site.ReleaseGuest), nil},
		"POST /v1/guests/ban":      {lodge{a}.ban(false), nil},
		"POST /v1/guests/unban":    {lodge{a}.ban(true), nil},
		"GET /v1/history":          {ledger{a}.history, []string{"since", "until", "origin", "site", "org", "user", "job", "kind"}},
		"POST /v1/reload":          {lodge{a}.reload, nil},
		"GET /v1/drain":            {health{a}.drained, nil},
		"POST /v1/drain":           {health{a}.drain, nil},
		"GET /v1/backup":           {keeping{a}.backup, []string{"keys"}},
		"GET /v1/log":              {keeping{a}.levels, nil},
		"POST /v1/log":             {keeping{a}.setLevels, nil},
		"GET /v1/log/lines":        {keeping{a}.lines, nil},
		"GET /v1/goroutines":       {keeping{a}.goroutines, nil},
		"POST /v1/stop":            {a.stopNode, nil},
		"GET /v1/openapi.json":     {openapi.Serve, nil},
		"GET /metrics":             {health{a}.by(health{a}.metrics), nil},
		"GET /healthz":             {health{a}.by(health{a}.alive), nil},
		"GET /readyz":              {health{a}.by(health{a}.ready), nil},

		"POST /v1/jobs/{id}/attach": {consoles{a}.open(false), nil},
		"POST /v1/jobs/{id}/exec":   {consoles{a}.open(true), nil},
	}
}

// Routes returns the parameters of all requests that are answered, by method and path.
func Routes() map[string][]string {
	routes := make(map[string][]string)
	for pattern, h := range (&Server{}).routes() {
		routes[pattern] = h.parameters
	}
	return routes
}

func (a *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, h := range a.routes() {
		if a.cfg.ReadOnly != "" && strings.HasPrefix(pattern, "POST ") && pattern != "POST /v1/preview" {
			h.serve = func(http.ResponseWriter, *http.Request) error { return errorf(api.CodeRefused, "%s", a.cfg.ReadOnly) }
		}
		mux.Handle(pattern, a.porter.admitted(pattern, h))
	}
	mux.Handle("/", a.porter.admitted("/", handler{func(_ http.ResponseWriter, r *http.Request) error {
		return errorf(api.CodeNotFound, "there is no %s %s here; see docs/api.md", r.Method, r.URL.Path)
	}, nil}))
	return mux
}

// handler answers one kind of request, or returns the error that is the answer.
// Only the parameters named are taken: a misspelt one must not go unnoticed.
type handler struct {
	serve      func(http.ResponseWriter, *http.Request) error
	parameters []string
}

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	most := int64(bodyMax)
	if r.URL.Path == modulesPath {
		most = grid.ModuleMax + 1 // one that is too long is told so
	}
	r.Body = http.MaxBytesReader(w, r.Body, most)
	err := h.check(r.URL.Query())
	if err == nil {
		err = h.serve(w, r)
	}
	if err != nil {
		writeError(w, because(r, err))
	}
}

func (h handler) check(query url.Values) error {
	for name := range query {
		if h.parameters != nil && slices.Contains(h.parameters, name) {
			continue
		}
		return errorf(api.CodeUsage, "unknown parameter %q", name)
	}
	return nil
}

// errorf returns an error that becomes the answer to a request.
func errorf(code, format string, args ...any) error {
	return &api.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

var httpStatus = map[string]int{
	api.CodeUsage: http.StatusBadRequest, api.CodeNotFound: http.StatusNotFound, api.CodeRefused: http.StatusConflict,
	api.CodeDenied: http.StatusForbidden, api.CodeUnknown: http.StatusUnauthorized, api.CodeLimit: http.StatusConflict,
	api.CodeBusy: http.StatusTooManyRequests, api.CodeUnavailable: http.StatusServiceUnavailable, api.CodeInternal: http.StatusInternalServerError,
}

// failureOf returns what users see of an error.
func failureOf(err error) *api.Error {
	var failure *api.Error
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &failure):
		return failure
	case errors.As(err, &tooLarge):
		return &api.Error{Code: api.CodeUsage, Message: fmt.Sprintf("the request is longer than %d bytes", tooLarge.Limit)}
	case errors.Is(err, site.ErrInvalid), errors.Is(err, lease.ErrBounds), errors.Is(err, wasm.ErrModule):
		return &api.Error{Code: api.CodeUsage, Message: err.Error()}
	case errors.Is(err, site.ErrUnknownJob), errors.Is(err, site.ErrUnknownLease), errors.Is(err, site.ErrUnknownLink),
		errors.Is(err, run.ErrOutputGone), errors.Is(err, guest.ErrNoBan):
		return &api.Error{Code: api.CodeNotFound, Message: err.Error()}
	case errors.Is(err, site.ErrLease), errors.Is(err, site.ErrDraining), errors.Is(err, site.ErrLink), errors.Is(err, site.ErrOtherJob), errors.Is(err, site.ErrState),
		errors.Is(err, site.ErrFull), errors.Is(err, site.ErrSpace), errors.Is(err, site.ErrTooWide), errors.Is(err, node.ErrNotHome), errors.Is(err, node.ErrRefused),
		errors.Is(err, node.ErrNoModules), errors.Is(err, wasm.ErrRoom),
		errors.Is(err, site.ErrGuest), errors.Is(err, guest.ErrBans):
		return &api.Error{Code: api.CodeRefused, Message: err.Error()}
	case errors.Is(err, quota.ErrLimit):
		return &api.Error{Code: api.CodeLimit, Message: err.Error()}
	case errors.Is(err, node.ErrBusy):
		return &api.Error{Code: api.CodeBusy, Message: err.Error()}
	case errors.Is(err, node.ErrStopped), errors.Is(err, context.Canceled):
		return &api.Error{Code: api.CodeUnavailable, Message: "the daemon is stopping"}
	}
	return &api.Error{Code: api.CodeInternal, Message: err.Error()}
}

func writeError(w http.ResponseWriter, err error) {
	failure := failureOf(err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(httpStatus[failure.Code])
	_ = json.NewEncoder(w).Encode(failure) // the asker is gone if this fails
}

func writeJSON(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v) // the asker is gone if this fails
	return nil
}

// readJSON reads the body of a request: one JSON value without unknown keys.
func readJSON(r *http.Request, v any) error {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	err := decoder.Decode(v)
	if err == nil && decoder.Decode(new(json.RawMessage)) != io.EOF {
		err = errors.New("something follows the JSON value")
	}
	var tooLarge *http.MaxBytesError
	if err != nil && !errors.As(err, &tooLarge) {
		return errorf(api.CodeUsage, "the body of the request: %v", err)
	}
	return err
}
