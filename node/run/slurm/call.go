package slurm

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"gridnode/node/shim"
	"gridnode/node/shim/link"
)

// Files of the work directory by which pilots find their daemon.
const (
	addressFile = "daemon.address"
	keyFile     = "daemon.key"
)

// listen begins to listen for pilots, if nobody does. Pilots of an earlier daemon call at the
// address of that one until they read the new one, so it is kept if it is free.
func (e *Engine) listen() error {
	if e.listener != nil {
		return nil
	}
	key, err := link.OpenKey(filepath.Join(e.orders.dir, keyFile))
	if err != nil {
		return fmt.Errorf("slurm.workdir: %w", err)
	}
	earlier, _ := e.orders.read(addressFile, "")
	host, err := e.host()
	if err != nil {
		return err
	}
	address := net.JoinHostPort(host, "0")
	if h, _, err := net.SplitHostPort(strings.TrimSpace(string(earlier))); err == nil && h == host {
		address = strings.TrimSpace(string(earlier))
	}
	l, err := link.Listen(address, key)
	if err != nil {
		l, err = link.Listen(net.JoinHostPort(host, "0"), key)
	}
	if err != nil {
		return fmt.Errorf("slurm.listen: %w", err)
	}
	if err := e.orders.put(addressFile, "", []byte(l.Addr().String()+"\n")); err != nil {
		l.Close()
		return fmt.Errorf("slurm.workdir: %w", err)
	}
	e.listener = l
	e.wg.Go(e.accept)
	return nil
}

// host returns the address at which compute nodes reach this machine: that from which it
// reaches the controller, if the configuration does not say.
func (e *Engine) host() (string, error) {
	if e.cfg.Listen != "" {
		return e.cfg.Listen, nil
	}
	ctx, cancel := context.WithTimeout(e.ctx, commandMax)
	defer cancel()
	text, _, err := e.commands.run(ctx, "", "scontrol", "show", "config")
	if err != nil {
		return "", fmt.Errorf("slurm.listen: which address compute nodes reach: %w", err)
	}
	controller, err := parseController(text)
	if err != nil {
		return "", fmt.Errorf("slurm.listen: %w", err)
	}
	c, err := net.Dial("udp", net.JoinHostPort(controller, "6817")) // nothing is sent: it chooses an address
	if err != nil {
		return "", fmt.Errorf("slurm.listen: the way to the controller: %w", err)
	}
	defer c.Close()
	host, _, err := net.SplitHostPort(c.LocalAddr().String())
	return host, err
}

// controllerHost is "SlurmctldHost[0] = name(address)" of scontrol show config; the address
// may be missing.
var controllerHost = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^SlurmctldHost(?:\[0\])?\s*=\s*([^\s()]+)(?:\(([^\s()]+)\))?`)
})

func parseController(text string) (string, error) {
	m := controllerHost().FindStringSubmatch(text)
	switch {
	case m == nil:
		return "", errors.New("scontrol show config names no SlurmctldHost: say the address of this machine that compute nodes reach")
	case m[2] != "":
		return m[2], nil
	}
	return m[1], nil
}

func isClosed(err error) bool { return errors.Is(err, shim.ErrClosed) }

// accept takes the calls of pilots until the engine is closed.
func (e *Engine) accept() {
	stop := context.AfterFunc(e.ctx, func() { e.listener.Close() })
	defer stop()
	for {
		c, err := e.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // out of descriptors: it passes
			e.log.Warn("cannot take the call of a pilot", "error", err)
			select {
			case <-time.After(time.Second):
			case <-e.ctx.Done():
			}
			continue
		}
		e.wg.Go(func() {
			secure, hello, err := e.listener.Greet(c)
			if err != nil {
				e.log.Debug("somebody called who is no pilot of this site", "error", err)
				return
			}
			if hello.Way != nil {
				e.ways.serve(secure, &hello)
			} else {
				e.serve(secure, &hello)
			}
		})
	}
}

// serve keeps a connection to the shim of a node of a pilot until it is gone.
func (e *Engine) serve(c *tls.Conn, hello *link.Hello) {
	ctx, cancel := context.WithTimeout(e.ctx, commandMax)
	defer cancel()
	client, err := shim.Attach(ctx, c)
	if err != nil {
		e.log.Debug("a pilot called and went away", "error", err)
		return
	}
	stop := context.AfterFunc(e.ctx, client.Close)
	defer stop()
	defer client.Close()
	g, ready := e.arrive(hello, client, elsewhere(c))
	if g == nil {
		_ = client.Expire(1) // nobody waits for it any more
		<-ctx.Done()
		return
	}
	select { // what has ended is told once it was said what there is
	case <-ready:
	case <-e.ctx.Done():
	}
	for end := range client.Events() {
		e.ending(g, client, &end)
	}
	e.departed(g, hello.Node, client)
}

// arrive enters the shim of a node. It returns nil if it belongs to no pilot.
func (e *Engine) arrive(hello *link.Hello, client *shim.Client, far bool) (g *glidein, ready <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, other := range e.glideins {
		if other.batch.name == hello.Name {
			g = other
		}
	}
	if g == nil || g.gone {
		return nil, nil
	}
	if len(g.nodes) == 0 {
		g.nodes, g.parted = make([]*calledNode, hello.Nodes), time.Now()
		g.size, g.used = make([]int64, hello.Nodes), grow(g.used, hello.Nodes)
	}
	if hello.Nodes != len(g.nodes) || len(g.used) > hello.Nodes {
		e.log.Error("a pilot has other nodes than it had", "slurm", g.batch.id, "nodes", hello.Nodes)
		return nil, nil
	}
	n := g.nodes[hello.Node]
	if n == nil {
		n = &calledNode{host: hello.Host}
		g.nodes[hello.Node] = n
	}
	if n.client != nil { // it calls anew before it was noticed that it is gone
		go n.client.Close()
		g.reach--
	}
	n.client, n.far = client, far
	g.reach++
	for _, t := range client.Adopt() {
		if far && t.Running {
			if err := e.ways.again(e.ctx, &e.wg, t.ID, g, hello.Node); err != nil {
				e.log.Error("a running task cannot be reached by those elsewhere any more", "task", t.ID, "error", err)
			}
		}
	}
	g.size[hello.Node] = hello.Processors
	if g.lent != nil {
		return g, e.arriveLent(g)
	}
	e.own.arriveOwn(g, hello.Node, client)
	done := make(chan struct{})
	close(done)
	return g, done
}

// elsewhere reports whether who called is on another machine than this one.
func elsewhere(c net.Conn) bool {
	there, ok1 := c.RemoteAddr().(*net.TCPAddr)
	here, ok2 := c.LocalAddr().(*net.TCPAddr)
	return !ok1 || !ok2 || !there.IP.Equal(here.IP)
}

func grow(used []int64, n int) []int64 {
	for len(used) < n {
		used = append(used, 0)
	}
	return used
}

// departed notes that a connection is gone. What runs goes on: the shim calls again, or the job
// of the pilot ends.
func (e *Engine) departed(g *glidein, node int, client *shim.Client) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if g.nodes[node].client != client {
		return
	}
	g.nodes[node].client, g.parted = nil, time.Now()
	g.reach--
	if g.lent != nil && !g.gone {
		e.downLent(g, "the connection to a node of the pilot is gone")
	}
}

// ending takes the end of what ran in a pilot.
func (e *Engine) ending(g *glidein, client *shim.Client, end *shim.Ended) {
	if g.lent != nil {
		e.endingLent(g, client, end)
		return
	}
	e.mu.Lock()
	j := g.open[end.ID]
	e.mu.Unlock()
	if j == nil {
		_ = client.Ack(end.ID) // nobody will ever ask for it
		return
	}
	e.own.over(g, j, end)
}
