package openapi

import "gridnode/node/api"

// Operation says of a request what its description tells programs.
type Operation struct {
	About string
	Takes any    // zero value of its body; nil: it has none
	Gives any    // zero value of its answer; nil: of kind Media
	Media string // of an answer or a stream that is no single JSON value
	Also  string // another kind that Accept may ask for: events, which go on behind Last-Event-ID
	Bytes bool   // its body is bytes

	Switches bool // the connection is the stream's from then on
}

// What answers and bodies are that are no single JSON value.
const (
	octets = "application/octet-stream"
	plain  = "text/plain"
)

// Operations describes every request of the API.
var Operations = map[string]Operation{
	"POST /v1/jobs":            {About: "Submits jobs, at most 10 000 with arrays spread out.", Takes: api.SubmitRequest{}, Gives: api.SubmitReply{}},
	"GET /v1/jobs":             {About: "Lists jobs, oldest first.", Gives: api.JobsReply{}},
	"GET /v1/jobs/{id}":        {About: "One job.", Gives: api.Job{}},
	"GET /v1/jobs/{id}/why":    {About: "Why a job is where it is.", Gives: api.WhyReply{}},
	"GET /v1/jobs/{id}/logs":   {About: "The output of a job, as bytes.", Media: octets},
	"GET /v1/jobs/{id}/files":  {About: "The files that a job has left.", Gives: api.JobFilesReply{}},
	"GET /v1/jobs/{id}/file":   {About: "One of the files that a job has left.", Media: octets},
	"POST /v1/preview":         {About: "What would become of one job, without submitting it.", Takes: api.SubmitRequest{}, Gives: api.WhyReply{}},
	"POST /v1/cancel":          {About: "Ends jobs.", Takes: api.IDsRequest{}, Gives: api.JobsReply{}},
	"POST /v1/wait":            {About: "Answers once jobs are over, or the time-out has passed.", Takes: api.IDsRequest{}, Gives: api.JobsReply{}},
	"POST /v1/hold":            {About: "Keeps jobs from starting.", Takes: api.IDsRequest{}, Gives: api.JobsReply{}},
	"POST /v1/release":         {About: "Lets jobs start that were held.", Takes: api.IDsRequest{}, Gives: api.JobsReply{}},
	"POST /v1/requeue":         {About: "Runs jobs again.", Takes: api.IDsRequest{}, Gives: api.JobsReply{}},
	"GET /v1/watch":            {About: "The jobs as they are, then a job for every change, one JSON value a line or as events.", Gives: api.Job{}, Media: api.MediaLines, Also: api.MediaEvents},
	"GET /v1/sites":            {About: "This site and those that the index names, with their quotes.", Gives: api.SitesReply{}},
	"GET /v1/sites/find":       {About: "Looks a site up by its name or ID.", Gives: api.FindSiteReply{}},
	"GET /v1/quotes":           {About: "Searches the directory for quotes.", Gives: api.SitesReply{}},
	"GET /v1/peers":            {About: "The nodes that this one is connected to.", Gives: api.PeersReply{}},
	"GET /v1/net":              {About: "How this node is reached.", Gives: api.Net{}},
	"GET /v1/peers/bans":       {About: "The peers that are kept away.", Gives: api.BansReply{}},
	"POST /v1/peers/unban":     {About: "Lets a peer back in.", Takes: api.UnbanRequest{}, Gives: api.UnbanReply{}},
	"GET /v1/counters":         {About: "Messages by kind and direction.", Gives: api.CountersReply{}},
	"GET /v1/node":             {About: "This node.", Gives: api.NodeInfo{}},
	"POST /v1/price":           {About: "Sets the price of the site.", Takes: api.PriceRequest{}, Gives: api.PriceReply{}},
	"GET /v1/bank/balance":     {About: "What is in an account.", Gives: api.BankReply{}},
	"GET /v1/bank/statement":   {About: "The newest transactions of an account.", Gives: api.BankStatement{}},
	"POST /v1/bank/transfer":   {About: "Moves credits to another account.", Takes: api.BankMove{}, Gives: api.BankReply{}},
	"POST /v1/bank/grant":      {About: "Issues credits of the bank kept here.", Takes: api.BankMove{}, Gives: api.BankReply{}},
	"GET /v1/leases":           {About: "Processors borrowed and lent.", Gives: api.LeasesReply{}},
	"POST /v1/leases":          {About: "Borrows processors.", Takes: api.LeaseRequest{}, Gives: api.LeaseReply{}},
	"POST /v1/leases/renew":    {About: "Renews a lease.", Takes: api.LeaseChangeRequest{}, Gives: api.LeaseReply{}},
	"POST /v1/leases/release":  {About: "Gives borrowed processors back.", Takes: api.LeaseChangeRequest{}, Gives: api.LeaseReply{}},
	"POST /v1/leases/revoke":   {About: "Wants lent processors back.", Takes: api.LeaseChangeRequest{}, Gives: api.LeaseReply{}},
	"GET /v1/links":            {About: "Parents, children and siblings that requests are delegated to.", Gives: api.LinksReply{}},
	"POST /v1/links/invite":    {About: "Invites a site to be linked.", Takes: api.LinkRequest{}, Gives: api.LinkReply{}},
	"POST /v1/links/accept":    {About: "Accepts an invitation.", Takes: api.LinkRequest{}, Gives: api.LinkReply{}},
	"POST /v1/links/drop":      {About: "Ends a link.", Takes: api.LinkRequest{}, Gives: api.LinkReply{}},
	"GET /v1/members":          {About: "The members of the federation that this site knows.", Gives: api.MembersReply{}},
	"POST /v1/members/invite":  {About: "Makes an invitation for one site.", Takes: api.InviteRequest{}, Gives: api.InviteReply{}},
	"POST /v1/members/revoke":  {About: "Takes a member's certificate back.", Takes: api.RevokeRequest{}, Gives: api.RevokeReply{}},
	"POST /v1/members/renew":   {About: "Has this site's certificate renewed.", Gives: api.RenewReply{}},
	"POST /v1/modules":         {About: "Hands a module over, for jobs to be submitted afterwards.", Bytes: true, Gives: api.ModuleReply{}},
	"POST /v1/content/missing": {About: "Which chunks of files are not here.", Takes: api.ContentRequest{}, Gives: api.ContentReply{}},
	"POST /v1/content":         {About: "Hands one chunk over.", Bytes: true, Gives: api.ContentReply{}},
	"POST /v1/trees":           {About: "Hands a tree of files over whose chunks are here.", Bytes: true, Gives: api.JobFiles{}},
	"GET /v1/datasets":         {About: "The data sets that this site holds.", Gives: api.DataSetsReply{}},
	"POST /v1/datasets":        {About: "Adds a data set.", Takes: api.DataSetRequest{}, Gives: api.DataSetReply{}},
	"POST /v1/datasets/remove": {About: "Forgets a data set.", Takes: api.DataSetRequest{}, Gives: struct{}{}},
	"GET /v1/datasets/find":    {About: "Who holds a data set.", Gives: api.HoldersReply{}},
	"POST /v1/pages":           {About: "Opens the page for browsers, of this site or another member's.", Takes: api.PageRequest{}, Gives: api.PageReply{}},
	"GET /v1/tokens":           {About: "The tokens that are good.", Gives: api.TokensReply{}},
	"POST /v1/tokens":          {About: "Makes a token.", Takes: api.TokenRequest{}, Gives: api.Token{}},
	"POST /v1/tokens/revoke":   {About: "Takes a token back.", Takes: api.TokenRevokeRequest{}, Gives: api.Token{}},
	"GET /v1/guests":           {About: "Who of other sites runs what here, and what was refused.", Gives: api.GuestsReply{}},
	"POST /v1/guests/cancel":   {About: "Ends jobs of guests.", Takes: api.GuestsChange{}, Gives: api.GuestsChanged{}},
	"POST /v1/guests/hold":     {About: "Keeps jobs of guests that wait from starting.", Takes: api.GuestsChange{}, Gives: api.GuestsChanged{}},
	"POST /v1/guests/release":  {About: "Lets jobs of guests start that were held.", Takes: api.GuestsChange{}, Gives: api.GuestsChanged{}},
	"POST /v1/guests/ban":      {About: "Runs nothing of a site or organisation any more.", Takes: api.GuestsChange{}, Gives: api.GuestsChanged{}},
	"POST /v1/guests/unban":    {About: "Lifts a ban.", Takes: api.GuestsChange{}, Gives: api.GuestsChanged{}},
	"GET /v1/history":          {About: "The job log, one JSON value a line.", Gives: api.HistoryLine{}, Media: api.MediaLines},
	"POST /v1/reload":          {About: "Reads the settings again.", Gives: api.ReloadReply{}},
	"GET /v1/drain":            {About: "What the site has still to do.", Gives: api.Drain{}},
	"POST /v1/drain":           {About: "Takes no new work, or takes it again.", Takes: api.DrainRequest{}, Gives: api.Drain{}},
	"POST /v1/stop":            {About: "Stops the daemon. Jobs go on.", Gives: struct{}{}},
	"GET /v1/users":            {About: "What users have, may have and have spent.", Gives: api.UsersReply{}},
	"GET /v1/log":              {About: "How severe messages must be to be logged.", Gives: api.LogLevels{}},
	"POST /v1/log":             {About: "Changes that, until the daemon ends.", Takes: api.LogLevels{}, Gives: api.LogLevels{}},
	"GET /v1/log/lines":        {About: "The last lines of the log.", Media: plain},
	"GET /v1/goroutines":       {About: "What every goroutine of the daemon is at.", Media: plain},
	"GET /v1/backup":           {About: "A copy of the site in one file.", Media: "application/gzip"},
	"GET /v1/openapi.json":     {About: "This description.", Gives: map[string]any{}},
	"GET /metrics":             {About: "Numbers for Prometheus.", Media: plain},
	"GET /healthz":             {About: "Whether the daemon works.", Media: plain},
	"GET /readyz":              {About: "Whether it can take work.", Media: plain},

	"POST /v1/jobs/{id}/attach": {About: "Sits at the terminal of a job: a stream of frames.", Takes: map[string]any{}, Switches: true},
	"POST /v1/jobs/{id}/exec":   {About: "Runs a command beside a job: a stream of frames.", Takes: map[string]any{}, Switches: true},
}
