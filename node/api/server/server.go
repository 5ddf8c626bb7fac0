package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"gridnode/grid"
	"gridnode/lease"
	"gridnode/node"
	"gridnode/node/api"
	"gridnode/node/run"
	"gridnode/node/site"
)

// Config is what the server is told.
type Config struct {
	Rating     grid.Rating // of this site
	Defaults   Defaults
	Federation string
	Version    string
	Logger     *slog.Logger // nil discards
	Stop       func()       // called when a user wants the daemon to stop; must not block
}

// Server serves the local API of one host. It decides nothing: it turns requests into
// questions to the host's loop and answers into JSON.
type Server struct {
	cfg     Config
	host    *node.Host
	server  http.Server
	waiters waiters
	started time.Time

	stopping context.Context // ends when Close begins: whoever waits is told
	stop     context.CancelFunc
}

// New returns the server of host. Serve it.
func New(host *node.Host, cfg Config) *Server {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	a := &Server{cfg: cfg, host: host, started: time.Now()}
	a.stopping, a.stop = context.WithCancel(context.Background())
	a.waiters.init()
	go a.follow(a.stopping, host.Subscribe())
	a.server = http.Server{
		Handler: a.handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		ConnContext: withPeer, ErrorLog: slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug),
	}
	return a
}

// Serve answers requests on listener until Close.
func (a *Server) Serve(listener net.Listener) error {
	if err := a.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("local API: %w", err)
	}
	return nil
}

// Close ends waiting requests with CodeUnavailable, gives the others until ctx
// ends, and returns.
func (a *Server) Close(ctx context.Context) error {
	a.stop()
	err := a.server.Shutdown(ctx)
	if err != nil {
		err = a.server.Close()
	}
	return err
}

// routes is the table of everything the API answers.
func (a *Server) routes() map[string]handler {
	return map[string]handler{
		"POST /v1/jobs":            {a.submit, []string{"wait"}},
		"GET /v1/jobs":             {a.jobs, jobsParameters},
		"GET /v1/jobs/{id}":        {a.job, nil},
		"GET /v1/jobs/{id}/why":    {a.why, nil},
		"GET /v1/jobs/{id}/logs":   {a.logs, []string{"stream", "follow", "tail"}},
		"POST /v1/preview":         {a.preview, nil},
		"POST /v1/cancel":          {a.cancel, nil},
		"POST /v1/wait":            {a.wait, nil},
		"GET /v1/watch":            {a.watch, jobsParameters},
		"GET /v1/sites":            {a.sites, nil},
		"GET /v1/quotes":           {a.quotes, []string{"maxPrice", "minSpeed", "cpus", "free", "limit", "sort"}},
		"GET /v1/peers":            {a.peers, nil},
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
		"GET /v1/datasets":         {a.dataSets, nil},
		"POST /v1/datasets":        {a.addDataSet, nil},
		"POST /v1/datasets/remove": {a.removeDataSet, nil},
		"GET /v1/datasets/find":    {a.findDataSet, []string{"name"}},
		"POST /v1/stop":            {a.stopNode, nil},
	}
}

func (a *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, h := range a.routes() {
		mux.Handle(pattern, h)
	}
	mux.Handle("/", handler{func(_ http.ResponseWriter, r *http.Request) error {
		return errorf(api.CodeNotFound, "there is no %s %s here; see docs/api.md", r.Method, r.URL.Path)
	}, nil})
	return mux
}

// handler answers one kind of request, or returns the error that is the answer.
// Only the parameters named are taken: a misspelt one must not go unnoticed.
type handler struct {
	serve      func(http.ResponseWriter, *http.Request) error
	parameters []string
}

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, bodyMax)
	err := h.check(r.URL.Query())
	if err == nil {
		err = h.serve(w, r)
	}
	if err != nil {
		writeError(w, err)
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
	case errors.Is(err, site.ErrInvalid), errors.Is(err, lease.ErrBounds):
		return &api.Error{Code: api.CodeUsage, Message: err.Error()}
	case errors.Is(err, site.ErrUnknownJob), errors.Is(err, site.ErrUnknownLease), errors.Is(err, site.ErrUnknownLink),
		errors.Is(err, run.ErrOutputGone):
		return &api.Error{Code: api.CodeNotFound, Message: err.Error()}
	case errors.Is(err, site.ErrLease), errors.Is(err, site.ErrLink), errors.Is(err, site.ErrOtherJob),
		errors.Is(err, site.ErrFull), errors.Is(err, site.ErrSpace), errors.Is(err, site.ErrTooWide), errors.Is(err, node.ErrNotHome):
		return &api.Error{Code: api.CodeRefused, Message: err.Error()}
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
