//go:build !client

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	manet "github.com/multiformats/go-multiaddr/net"
	"github.com/spf13/cobra"

	"gridnode/grid"
	"gridnode/node/api"
	"gridnode/node/reach"
	"gridnode/node/sandbox"
	"gridnode/node/store"
)

// finding is what was looked at, and how it is.
type finding struct {
	What  string `json:"what"`
	State string `json:"state"` // ok, warning or error
	Text  string `json:"text"`
	Do    string `json:"do,omitempty"`
}

// States of findings.
const (
	stateOK      = "ok"
	stateWarning = "warning"
	stateError   = "error"
)

func newDoctor(root *options) *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong with this site, and say what to do",
		Long: `Look for what is wrong with this site: its settings and who can read its home, the disk, the
engine and the sandbox for jobs of other sites, certificates, the ports if no daemon has
them, and with a daemon the clocks and versions of its peers. The exit code is 1 if
something keeps the site from working.`,
		Example: `  gridnode doctor
  gridnode doctor -o json`,
		Args: exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			found := examine(cmd.Context(), root)
			err := printList(cmd.OutOrStdout(), l, []column[finding]{
				{head: "WHAT", text: func(f finding) string { return f.What }},
				{head: "STATE", text: func(f finding) string { return f.State }},
				{head: "FOUND", text: func(f finding) string { return f.Text }},
				{head: "DO", text: func(f finding) string { return f.Do }},
			}, found)
			for _, f := range found {
				if err == nil && f.State == stateError {
					err = exitStatus(exitFailed)
				}
			}
			return err
		},
	}
	addListingFlags(cmd, &l)
	return cmd
}

// examine looks at everything, whatever is wrong with the rest.
func examine(ctx context.Context, root *options) (found []finding) {
	s, _, err := loadSettings(root.home, nil)
	found = append(found, judged("settings", err, filepath.Join(root.home, configFile)+" is valid", "mend the file; 'gridnode config validate' prints every problem"))
	found = append(found, judged("home", checkPrivate(root.home), "closed to others", ""))
	found = append(found, examineDisk(root.home))
	if s == nil {
		return found
	}
	found = append(found, examineEngine(s), examineSandbox(s))
	found = append(found, examineCertificates(root.home, s)...)
	node, err := root.client().Node(ctx)
	if err != nil {
		found = append(found, finding{"daemon", stateWarning, "none runs", "start it with '" + api.StartCommand(root.home) + "'"})
		return append(found, examinePorts(s)...)
	}
	found = append(found, finding{"daemon", stateOK, "version " + node.Version + ", process " + fmt.Sprint(node.PID), ""})
	if node.Version != version {
		found = append(found, finding{"version", stateWarning, "the daemon is " + node.Version + ", this program " + version, "restart the daemon: running jobs go on"})
	}
	return append(found, examinePeers(ctx, root.client())...)
}

// judged says how something is whose only trouble is an error.
func judged(what string, err error, good, do string) finding {
	if err == nil {
		return finding{what, stateOK, good, ""}
	}
	return finding{what, stateError, strings.ReplaceAll(err.Error(), "\n", "; "), do}
}

func examineDisk(home string) finding {
	free, err := store.Free(home)
	switch {
	case err != nil:
		return finding{"disk", stateError, err.Error(), ""}
	case free < store.SpaceMin:
		return finding{"disk", stateError, fmt.Sprintf("%d MiB free, so no job is taken", free>>20), "make room where the home is"}
	case free < 4*store.SpaceMin:
		return finding{"disk", stateWarning, fmt.Sprintf("%d MiB free", free>>20), fmt.Sprintf("make room: below %d MiB no job is taken", store.SpaceMin>>20)}
	}
	return finding{"disk", stateOK, fmt.Sprintf("%d MiB free", free>>20), ""}
}

func examineEngine(s *settings) finding {
	if !s.onSlurm {
		return finding{"engine", stateOK, fmt.Sprintf("processes of this machine, %d processors", s.processors), ""}
	}
	for _, name := range []string{"sbatch", "squeue", "sinfo", "scontrol", "scancel"} {
		if _, err := exec.LookPath(name); err != nil {
			return finding{"engine", stateError, name + " of Slurm is not on the PATH", "install Slurm's commands, or set site.engine to process"}
		}
	}
	return finding{"engine", stateOK, "Slurm's commands are there", ""}
}

func examineSandbox(s *settings) finding {
	if !s.foreign && !s.lend && s.packHead == "" {
		return finding{"sandbox", stateOK, "not needed: nothing of other sites runs here", ""}
	}
	if s.sandbox.Walls == sandbox.None {
		return finding{"sandbox", stateWarning, "jobs of other sites run without one (sandbox.walls: none)", "set sandbox.walls to auto"}
	}
	means := sandbox.Find()
	kind, err := means.Walls(s.sandbox.Walls)
	switch {
	case err != nil:
		return finding{"sandbox", stateError, "none, so jobs of other sites are refused: " + err.Error(), "'gridnode diag sandbox' says what is missing"}
	case means.Groups == nil:
		return finding{"sandbox", stateWarning, fmt.Sprintf("%v, without control groups: %v", kind, means.NoGroups), "have systemd delegate them, as the unit of the packages does"}
	}
	return finding{"sandbox", stateOK, fmt.Sprintf("%v, with control groups", kind), ""}
}

// certificateWarning is how long before its end a certificate is worth a word.
const certificateWarning = 7 * 24 * time.Hour

func examineCertificates(home string, s *settings) (found []finding) {
	card, err := loadCard(home)
	switch {
	case err != nil:
		found = append(found, finding{"membership", stateError, err.Error(), "ask for another invitation"})
	case card == nil:
		found = append(found, finding{"membership", stateWarning, "none: the federation is open, and no job of another site runs here", "'gridnode federation create' makes one of members"})
	default:
		key, err := loadKey(home)
		if err != nil {
			return append(found, judged("key", err, "", ""))
		}
		id, err := peer.IDFromPrivateKey(key)
		if err != nil {
			return append(found, judged("key", err, "", ""))
		}
		me, err := card.Federation.Verify(card.Proof, grid.SiteID(id.String()), grid.Time(time.Now().UnixMicro()))
		if err != nil {
			found = append(found, finding{"membership", stateError, err.Error(), "'gridnode renew', or another invitation"})
		} else {
			found = append(found, lasting("membership", time.UnixMicro(int64(me.Expires)), "'gridnode renew' asks for another certificate"))
		}
	}
	if s.doors.listen != "" || s.doors.pageIsOpen() {
		pair, err := tls.LoadX509KeyPair(s.doors.certificate, s.doors.key)
		if err != nil {
			found = append(found, judged("api.certificate", err, "", ""))
		} else {
			found = append(found, lasting("api.certificate", pair.Leaf.NotAfter, "renew the certificate of api.certificate"))
		}
	}
	return found
}

// lasting says how long something is good still.
func lasting(what string, end time.Time, do string) finding {
	text := "until " + end.UTC().Format(time.RFC3339)
	switch left := time.Until(end); {
	case left < 0:
		return finding{what, stateError, "it has ended: " + text, do}
	case left < certificateWarning:
		return finding{what, stateWarning, text, do}
	}
	return finding{what, stateOK, text, ""}
}

// examinePorts tries to listen where the daemon would.
func examinePorts(s *settings) (found []finding) {
	var tcp []string
	for _, text := range s.listen {
		addresses, err := reach.Listen(text)
		if err != nil {
			found = append(found, judged("network.listen", err, "", ""))
			continue
		}
		for _, a := range addresses {
			if network, host, err := manet.DialArgs(a); err == nil && strings.HasPrefix(network, "tcp") {
				tcp = append(tcp, host)
			}
		}
	}
	for _, address := range append(tcp, s.doors.listen, s.doors.page, s.doors.metrics) {
		if address == "" {
			continue
		}
		port, err := net.Listen("tcp", address)
		if err == nil {
			err = port.Close()
		}
		found = append(found, judged("port "+address, err, "free", "end what listens there, or choose another one"))
	}
	return found
}

// clockWarning is by how much a peer's clock may differ: deadlines and certificates are
// instants.
const clockWarning = 5 * time.Second

func examinePeers(ctx context.Context, client *api.Client) (found []finding) {
	reply, err := client.Net(ctx)
	if err != nil {
		return append(found, judged("network", err, "", ""))
	}
	for _, p := range reply.Problems {
		state := stateWarning
		if p.Severe {
			state = stateError
		}
		found = append(found, finding{"network", state, p.What, p.Do})
	}
	if len(reply.Problems) == 0 {
		found = append(found, finding{"network", stateOK, fmt.Sprintf("%s, %d peers", reply.Reachability, len(reply.Peers)), ""})
	}
	ahead, asked := 0, 0
	for _, p := range reply.Peers {
		if p.Offset == nil {
			continue
		}
		asked++
		if d := grid.Time(*p.Offset).Duration().Abs(); d > clockWarning {
			ahead++
		}
	}
	clock := finding{"clock", stateOK, fmt.Sprintf("as that of %d peers", asked), ""}
	switch {
	case asked == 0:
		clock = finding{"clock", stateOK, "nobody to compare it with", ""}
	case 2*ahead > asked:
		clock = finding{"clock", stateError, fmt.Sprintf("differs from that of %d of %d peers by more than %v", ahead, asked, clockWarning), "set it, and have it kept by NTP"}
	}
	found = append(found, clock)
	peers, err := client.Peers(ctx)
	if err != nil {
		return append(found, judged("versions", err, "", ""))
	}
	versions := map[string]int{}
	for _, p := range peers.Peers {
		if v, ok := strings.CutPrefix(p.Agent, "gridnode/"); ok && v != version {
			versions[v]++
		}
	}
	skew := finding{"versions", stateOK, "peers have the same", ""}
	if len(versions) > 0 {
		skew = finding{"versions", stateOK, fmt.Sprintf("peers have others: %v; this is %s", versions, version), ""}
	}
	return append(found, skew)
}
