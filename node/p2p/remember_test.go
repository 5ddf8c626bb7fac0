package p2p

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// A node that joins nobody, and that others do not miss since they have each other,
// finds them at its next start by what it wrote down before the crash.
func TestRemembersPeersThatJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &Memory{}
		first, cfg := config(t, 0, memory)
		cfg.Remember = filepath.Join(t.TempDir(), "peers")
		start(t, first, cfg)
		var others []*node
		for i := range uint64(2) {
			n, joining := config(t, i+1, memory)
			joining.Join = first.Addrs()
			start(t, n, joining)
			<-n.joined
			others = append(others, n)
		}
		defer closeAll(others)
		time.Sleep(2 * rememberPause)
		if known := readRemembered(cfg.Remember); len(known) != 2 {
			t.Fatalf("%d peers are written down, want 2: %v", len(known), known)
		}
		cfg.Listen = []string{first.host.Network().ListenAddresses()[0].String()}
		first.Close()
		again, _ := config(t, 0, memory)
		start(t, again, cfg)
		defer again.Close()
		<-again.joined
		if n := again.router.RoutingTable().Size(); n != 2 {
			t.Errorf("the restarted node knows %d others when it has joined, want 2", n)
		}
	})
}
