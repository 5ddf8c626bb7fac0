package link

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func key(t *testing.T, path string) *Key {
	t.Helper()
	k, err := OpenKey(path)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestOnlyWhoHasTheKeyIsHeard(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	l, err := Listen("127.0.0.1:0", key(t, path))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	hello := Hello{Name: "pilot", Node: 1, Nodes: 2, Processors: 4, Host: "n2"}
	other := key(t, filepath.Join(t.TempDir(), "other"))
	for _, tt := range []struct {
		name string
		key  *Key
		want bool
	}{{"the same key", key(t, path), true}, {"another key", other, false}} {
		heard := make(chan error, 1)
		go func() {
			c, err := l.Accept()
			if err != nil {
				heard <- err
				return
			}
			secure, got, err := l.Greet(c)
			if err == nil {
				if got != hello {
					t.Errorf("%s: heard %+v", tt.name, got)
				}
				_, err = io.WriteString(secure, "welcome")
				secure.Close()
			}
			heard <- err
		}()
		c, err := Dial(t.Context(), l.Addr().String(), tt.key, hello)
		if err == nil {
			text, _ := io.ReadAll(c)
			if (string(text) == "welcome") != tt.want {
				t.Errorf("%s: read %q", tt.name, text)
			}
			c.Close()
		} else if tt.want {
			t.Errorf("%s: %v", tt.name, err)
		}
		if err := <-heard; (err == nil) != tt.want {
			t.Errorf("%s: the daemon's end says %v", tt.name, err)
		}
	}
}

// TestSilentCallersKeepNobodyOut: more callers that say nothing than are greeted at a time, and
// then one that has the key; and the silent ones are not kept.
func TestSilentCallersKeepNobodyOut(t *testing.T) {
	k := key(t, filepath.Join(t.TempDir(), "key"))
	l, err := Listen("127.0.0.1:0", k)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var greeted sync.WaitGroup
	defer greeted.Wait()
	greet := func() net.Conn {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		greeted.Go(func() {
			if secure, _, err := l.Greet(c); err == nil {
				_, _ = io.WriteString(secure, "welcome")
				secure.Close()
			}
		})
		return c
	}
	var silent []net.Conn
	late := time.Now().Add(greetMax)
	for range callersMax + 1 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		silent = append(silent, c)
		for here, entered := greet(), false; !entered; runtime.Gosched() { // so that it is known who is older
			if time.Now().After(late) {
				t.Fatal("a caller is not counted")
			}
			l.mu.Lock()
			entered = len(l.callers) == callersMax || slices.Contains(l.callers, here)
			l.mu.Unlock()
		}
	}
	told := make(chan string, 1)
	go func() {
		c, err := Dial(t.Context(), l.Addr().String(), k, Hello{Name: "pilot", Nodes: 1, Processors: 1})
		if err != nil {
			told <- err.Error()
			return
		}
		defer c.Close()
		text, _ := io.ReadAll(c)
		told <- string(text)
	}()
	greet()
	if text := <-told; text != "welcome" {
		t.Errorf("the one that has the key reads %q", text)
	}
	for _, c := range silent[:2] { // the oldest have made room
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("a silent caller is answered")
		}
	}
	if l.mu.Lock(); len(l.callers) > callersMax {
		t.Errorf("%d callers are greeted at once", len(l.callers))
	}
	l.mu.Unlock()
}

func TestABadHelloIsRefused(t *testing.T) {
	for _, h := range []Hello{
		{}, {Name: "p", Nodes: 1}, {Name: "p", Nodes: 1, Node: 1, Processors: 1}, {Name: "p", Nodes: 1, Node: -1, Processors: 1},
		{Name: "p", Nodes: NodesMax + 1, Processors: 1}, {Name: strings.Repeat("p", nameMax+1), Nodes: 1, Processors: 1}, {Name: "p", Nodes: 1, Processors: -1},
	} {
		if h.check() == nil {
			t.Errorf("%+v was taken", h)
		}
	}
}

func TestAKeyThatOthersCanReadIsNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	key(t, path)
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenKey(path); err == nil {
		t.Error("it was taken")
	}
}
