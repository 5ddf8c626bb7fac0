package slurm

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// network is what a cluster is on whose controller and nodes are each in a network namespace of its
// own: a bridge, on which this machine is, too. They reach each other and this machine, and nothing
// else; what listens on the loopback of one nobody else reaches. A nil one is this machine's.
type network struct {
	number int
	hosts  int
}

var networks atomic.Int32

// networksMax bounds those of one process: each has 256 addresses of 16 384 that it shares with
// other processes.
const networksMax = 64

func newNetwork(hosts int) (*network, error) {
	x := &network{hosts: hosts, number: os.Getpid()%256*networksMax + int(networks.Add(1))%networksMax}
	commands := []string{
		"link add " + x.bridge() + " type bridge",
		"addr add " + x.at(1) + "/24 dev " + x.bridge(),
		"link set " + x.bridge() + " up",
	}
	for n := range hosts {
		port := fmt.Sprintf("%sp%d", x.bridge(), n)
		commands = append(commands,
			"netns add "+x.namespace(n),
			"link add "+port+" type veth peer name eth0 netns "+x.namespace(n),
			"link set "+port+" master "+x.bridge()+" up",
			"-n "+x.namespace(n)+" addr add "+x.address(n)+"/24 dev eth0",
			"-n "+x.namespace(n)+" link set eth0 up",
			"-n "+x.namespace(n)+" link set lo up",
		)
	}
	for _, c := range commands {
		if err := ip(c); err != nil {
			x.remove()
			return nil, err
		}
	}
	return x, nil
}

// remove ends it, with what still runs there.
func (x *network) remove() {
	if x == nil {
		return
	}
	_ = ip("link del " + x.bridge()) // what was not made cannot be removed
	for n := range x.hosts {
		left, _ := exec.Command("ip", "netns", "pids", x.namespace(n)).Output() // steps that wait for a controller that is gone
		for pid := range strings.FieldsSeq(string(left)) {
			if number, err := strconv.Atoi(pid); err == nil {
				_ = syscall.Kill(number, syscall.SIGKILL) // it may have ended
			}
		}
		_ = ip("netns del " + x.namespace(n))
	}
}

func (x *network) bridge() string { return fmt.Sprintf("gns%d", x.number) }

func (x *network) namespace(host int) string {
	if x == nil {
		return ""
	}
	return fmt.Sprintf("gridnode-slurm%d-%d", x.number, host)
}

func (x *network) address(host int) string { return x.at(10 + host) }

func (x *network) at(host int) string {
	if x == nil {
		return "127.0.0.1"
	}
	return fmt.Sprintf("10.%d.%d.%d", 128+x.number/256, x.number%256, host)
}

func ip(args string) error {
	out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", args, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// apartMissing says why nodes cannot have networks of their own here, or nil.
func apartMissing() error {
	if _, err := exec.LookPath("ip"); err != nil {
		return errors.New("ip (iproute2) is not installed")
	}
	x, err := newNetwork(1)
	if err != nil {
		return fmt.Errorf("network namespaces cannot be made: %w", err)
	}
	x.remove()
	return nil
}
