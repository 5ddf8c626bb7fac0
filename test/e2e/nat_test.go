package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// internet is a segment that hosts and NATs are on, each in a network namespace of its own.
// Nothing leads out of it. Its addresses have to look public: libp2p takes those that are
// set aside for documentation for unreachable, and tries none of them.
type internet struct {
	testing.TB
	name  string // of the namespaces, in front
	wire  string
	hosts int
	make  func(tb testing.TB, name string, flags ...string) *site
}

var internets atomic.Int32

// newInternet makes one, or skips the test and says why, unless GRIDNODE_NAT=must.
func newInternet(tb testing.TB) *internet {
	tb.Helper()
	left := func(format string, args ...any) {
		tb.Helper()
		if os.Getenv("GRIDNODE_NAT") == "must" {
			tb.Fatalf(format, args...)
		}
		tb.Skipf(format, args...)
	}
	if _, err := exec.LookPath("nft"); err != nil || ipProgram == "" {
		left("needs ip (iproute2) and nft (nftables) to make NATs: make nat")
	}
	n := &internet{TB: tb, make: newSite, name: fmt.Sprintf("gridnode-%d-nat%d", os.Getpid(), internets.Add(1))}
	n.wire = n.name + "-wire"
	if out, err := exec.Command(ipProgram, "netns", "add", n.wire).CombinedOutput(); err != nil {
		left("network namespaces are not permitted here: %v: %s", err, out)
	}
	tb.Cleanup(func() { n.ip("netns del " + n.wire) })
	if out, err := exec.Command(ipProgram, "-n", n.wire, "link", "add", "bridge", "type", "bridge").CombinedOutput(); err != nil {
		left("a bridge cannot be made here: %v: %s", err, out)
	}
	n.ip("-n " + n.wire + " link set bridge up")
	return n
}

func (n *internet) ip(args string) {
	n.Helper()
	n.sh("", ipProgram, strings.Fields(args)...)
}

func (n *internet) sh(stdin, program string, args ...string) {
	n.Helper()
	cmd := exec.Command(program, args...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		n.Fatalf("%s %q: %v: %s", program, args, err, out)
	}
}

// add makes a namespace. hosts is what its /etc/hosts says.
func (n *internet) add(name, hosts string) string {
	n.Helper()
	ns := n.name + "-" + name
	n.ip("netns add " + ns)
	n.Cleanup(func() { n.ip("netns del " + ns) })
	n.ip("-n " + ns + " link set lo up")
	if hosts != "" {
		dir := filepath.Join("/etc/netns", ns)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			n.Fatal(err)
		}
		n.Cleanup(func() { os.RemoveAll(dir) })
		if err := os.WriteFile(filepath.Join(dir, "hosts"), []byte("127.0.0.1 localhost\n"+hosts+"\n"), 0o644); err != nil {
			n.Fatal(err)
		}
	}
	return ns
}

// host puts a namespace on the segment and returns its address.
func (n *internet) host(ns string) string {
	n.Helper()
	n.hosts++
	port, address := fmt.Sprintf("port%d", n.hosts), fmt.Sprintf("45.0.0.%d", 10+n.hosts)
	n.ip("link add " + port + " netns " + n.wire + " type veth peer name outside netns " + ns)
	n.ip("-n " + n.wire + " link set " + port + " master bridge up")
	n.ip("-n " + ns + " addr add " + address + "/24 dev outside")
	n.ip("-n " + ns + " link set outside up")
	return address
}

// nat is how a NAT gives out ports.
type nat string

const (
	cone      nat = ""                    // the same port for whoever is spoken to
	symmetric nat = "random,fully-random" // a new one for everybody
)

// rules let nothing in but answers.
const rules = `
table ip nat {
	chain postrouting {
		type nat hook postrouting priority 100; policy accept;
		oifname "outside" masquerade %s
	}
}
table ip filter {
	chain forward {
		type filter hook forward priority 0; policy drop;
		ct state established,related accept
		iifname "inside" accept
	}
	chain input {
		type filter hook input priority 0; policy drop;
		ct state established,related accept
		iifname "inside" accept
	}
}
`

// behind makes a namespace behind a NAT of its own.
func (n *internet) behind(name string, kind nat, hosts string) (ns, address string) {
	n.Helper()
	router := n.add(name+"-nat", "")
	n.host(router)
	ns, address = n.add(name, hosts), fmt.Sprintf("192.168.%d.2", n.hosts)
	gateway := fmt.Sprintf("192.168.%d.1", n.hosts)
	n.ip("link add inside netns " + router + " type veth peer name inside netns " + ns)
	n.ip("-n " + router + " addr add " + gateway + "/24 dev inside")
	n.ip("-n " + router + " link set inside up")
	n.ip("-n " + ns + " addr add " + address + "/24 dev inside")
	n.ip("-n " + ns + " link set inside up")
	n.ip("-n " + ns + " route add default via " + gateway)
	n.sh("", ipProgram, "netns", "exec", router, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
	n.sh(fmt.Sprintf(rules, kind), ipProgram, "netns", "exec", router, "nft", "-f", "-")
	return ns, address
}

// public makes a site on the segment.
func (n *internet) public(name string, flags ...string) *site {
	n.Helper()
	ns := n.add(name, "")
	return n.site(name, ns, n.host(ns), flags)
}

// private makes a site behind a NAT.
func (n *internet) private(name string, kind nat, hosts string, flags ...string) *site {
	n.Helper()
	ns, address := n.behind(name, kind, hosts)
	return n.site(name, ns, address, flags)
}

func (n *internet) site(name, ns, address string, flags []string) *site {
	n.Helper()
	s := n.make(n.TB, name, append([]string{"--foreign", "allow", "--processors", "2"}, flags...)...)
	s.netns, s.ip = ns, address
	return s.set("network.listen", fmt.Sprintf("%s:%d", address, s.port))
}

// inside runs the program in the site's network, which must exit with 0.
func (s *site) inside(args ...string) string {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := s.command(ctx, args...)
	cmd.Path, cmd.Args = ipProgram, append([]string{"ip", "netns", "exec", s.netns, program}, cmd.Args[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		s.Fatalf("gridnode %q: %v\nstdout: %s\nstderr: %s", args, err, &stdout, &stderr)
	}
	return stdout.String()
}
