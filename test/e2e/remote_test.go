package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority is who makes certificates for a test's ports.
type authority struct {
	testing.TB
	key  *ecdsa.PrivateKey
	self *x509.Certificate
	file string // its certificate
}

func newAuthority(tb testing.TB) *authority {
	a := &authority{TB: tb, file: filepath.Join(tb.TempDir(), "ca.pem")}
	a.key = a.newKey()
	a.self = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	a.write(a.file, "CERTIFICATE", a.sign(a.self, &a.key.PublicKey))
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.Fatal(err)
	}
	return key
}

func (a *authority) sign(c *x509.Certificate, key *ecdsa.PublicKey) []byte {
	raw, err := x509.CreateCertificate(rand.Reader, c, a.self, key, a.key)
	if err != nil {
		a.Fatal(err)
	}
	return raw
}

func (a *authority) write(path, kind string, raw []byte) {
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600); err != nil {
		a.Fatal(err)
	}
}

// certify writes a certificate for localhost, with its key, below dir.
func (a *authority) certify(dir string, serial int64) {
	key := a.newKey()
	raw := a.sign(&x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "site"}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}, &key.PublicKey)
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.Fatal(err)
	}
	a.write(filepath.Join(dir, "site.key"), "PRIVATE KEY", encoded)
	a.write(filepath.Join(dir, "site.pem"), "CERTIFICATE", raw)
}

// client returns one that believes the authority.
func (a *authority) client() *http.Client {
	text, err := os.ReadFile(a.file)
	if err != nil {
		a.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}, DisableKeepAlives: true}
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

// TestFromElsewhere: who bears a token asks a daemon by its port, in the command line, in Python
// and in the page, and no longer when it was revoked; nobody else does. A certificate that is
// renewed counts without a restart.
func TestFromElsewhere(t *testing.T) {
	ca := newAuthority(t)
	s := newSite(t, "alpha")
	certificates := t.TempDir()
	ca.certify(certificates, 2)
	port, page := freePort(t), freePort(t)
	s.set("api.listen", fmt.Sprintf("127.0.0.1:%d", port)).set("web.listen", fmt.Sprintf("0.0.0.0:%d", page))
	s.set("api.certificate", filepath.Join(certificates, "site.pem")).set("api.key", filepath.Join(certificates, "site.key"))
	s.start()

	var token struct{ ID, Token string }
	s.json(&token, "token", "create", "root", "--role", "admin", "--expires", "1h")
	url := fmt.Sprintf("https://localhost:%d", port)
	away := *s
	away.daemon, away.home = nil, t.TempDir()
	away.env = append(away.env, "GRIDNODE_HOME=", "GRIDNODE_REMOTE="+url, "GRIDNODE_TOKEN="+token.Token, "SSL_CERT_FILE="+ca.file)
	id := strings.TrimSpace(away.ok("submit", "-q", "-W", "--", "sh", "-c", "echo from elsewhere"))
	if out := away.ok("logs", id); out != "from elsewhere\n" {
		t.Errorf("the job prints %q", out)
	}
	if out := away.ok("status", "--all", "--no-headers"); !strings.Contains(out, "done") {
		t.Errorf("status prints %q", out)
	}
	away.code(6, "token", "list") // at the site itself only
	nobody := away
	nobody.env = append(nobody.env, "GRIDNODE_TOKEN=gridnode_wrong")
	nobody.code(6, "status")

	if python, err := exec.LookPath("python3"); err == nil {
		script := fmt.Sprintf("import gridnode\nsite = gridnode.Client(url=%q, token=%q, cafile=%q)\nprint(site.node()['name'], next(iter(site.watch(all='true')))['state'])", url, token.Token, ca.file)
		cmd := exec.CommandContext(t.Context(), python, "-B", "-c", script)
		cmd.Dir = "../../clients/python"
		if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "alpha done" {
			t.Errorf("Python: %v: %s", err, out)
		}
	}

	// The page: by a name that the certificate has, with the key of 'gridnode web' or a token.
	browser := ca.client()
	ask := func(path, key string) (int, string, *x509.Certificate) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("https://localhost:%d%s", page, path), nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Sec-Fetch-Site", "same-origin")
		if key != "" {
			request.Header.Set("Authorization", "Bearer "+key)
		}
		response, err := browser.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(text), response.TLS.PeerCertificates[0]
	}
	opened := strings.TrimSpace(s.ok("web"))
	base, key, _ := strings.Cut(opened, "/#key=")
	if base != fmt.Sprintf("https://localhost:%d", page) {
		t.Errorf("the page is at %s", opened)
	}
	if status, text, _ := ask("/", ""); status != http.StatusOK || !strings.Contains(text, "<html") {
		t.Errorf("the page: %d %s", status, text)
	}
	for who, tt := range map[string]struct {
		key    string
		status int
	}{"key": {key, 200}, "token": {token.Token, 200}, "nobody": {"", 401}, "wrong": {"gridnode_wrong", 401}} {
		if status, text, _ := ask("/v1/node", tt.key); status != tt.status {
			t.Errorf("%s: %d %s, want %d", who, status, text, tt.status)
		}
	}

	ca.certify(certificates, 3)
	within(t, "the renewed certificate is shown", func() error {
		for {
			if _, _, shown := ask("/", ""); shown.SerialNumber.Int64() == 3 {
				return nil
			}
			<-time.After(time.Second)
		}
	})
	away.ok("status")

	s.ok("token", "revoke", token.ID)
	away.code(6, "status")
	if status, _, _ := ask("/v1/node", token.Token); status != http.StatusUnauthorized {
		t.Errorf("a revoked token: %d", status)
	}
}

// TestVisitors: people of other members look at a site's page if its owner lets them, see what
// members may know and nothing else, and no longer once their site is banned or revoked.
func TestVisitors(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	certificates := t.TempDir()
	ca.certify(certificates, 2)
	alpha := newLoner(t, "alpha")
	alpha.ok("federation", "create", "physics")
	alpha.start()
	port := freePort(t)
	beta := newLoner(t, "beta", "--join", strings.TrimSpace(alpha.ok("invite")), "--foreign", "allow")
	gamma := newLoner(t, "gamma", "--join", strings.TrimSpace(alpha.ok("invite"))).start()
	if r := beta.set("web.members", "allow").code(2, "config", "validate"); !strings.Contains(r.stderr, "web.listen") {
		t.Errorf("a page that others cannot reach: %v", r)
	}
	beta.set("api.certificate", filepath.Join(certificates, "site.pem")).set("api.key", filepath.Join(certificates, "site.key"))
	beta.set("web.listen", fmt.Sprintf("0.0.0.0:%d", port)).start()
	beta.sees(3)
	gamma.sees(3)

	if r := beta.code(5, "web", "--at", "alpha"); !strings.Contains(r.stderr, "web.members") {
		t.Errorf("a site that shows its page to nobody: %v", r)
	}
	keys := map[*site]string{}
	for _, s := range []*site{alpha, gamma} {
		base, key, _ := strings.Cut(strings.TrimSpace(s.ok("web", "--at", "beta")), "/#key=")
		if base != fmt.Sprintf("https://localhost:%d", port) {
			t.Errorf("the page is at %s", base)
		}
		keys[s] = key
	}
	browser := ca.client()
	ask := func(path, key string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("https://localhost:%d%s", port, path), nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Sec-Fetch-Site", "same-origin")
		request.Header.Set("Authorization", "Bearer "+key)
		response, err := browser.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(text)
	}
	for path, want := range map[string]int{"/v1/sites": 200, "/v1/node": 200, "/v1/jobs": 403, "/v1/members": 403, "/v1/leases": 403} {
		if status, text := ask(path, keys[gamma]); status != want {
			t.Errorf("%s for a visitor: %d %s, want %d", path, status, text, want)
		}
	}
	if _, text := ask("/v1/sites", keys[gamma]); strings.Count(text, `"id"`) != 3 {
		t.Errorf("a visitor sees %s", text)
	}
	if _, text := ask("/v1/node", keys[gamma]); !strings.Contains(text, `"role":"visitor"`) || strings.Contains(text, `"pid":`+fmt.Sprint(beta.daemon.Process.Pid)) {
		t.Errorf("a visitor is told %s", text)
	}

	beta.ok("guests", "ban", "alpha", "--for", "1h")
	if status, text := ask("/v1/node", keys[alpha]); status != http.StatusUnauthorized || !strings.Contains(text, "by this site's owner") {
		t.Errorf("a visitor of a banned site: %d %s", status, text)
	}
	if r := alpha.code(5, "web", "--at", "beta"); !strings.Contains(r.stderr, "by this site's owner") {
		t.Errorf("a banned site wants to look: %v", r)
	}
	if status, text := ask("/v1/node", keys[gamma]); status != http.StatusOK {
		t.Errorf("a visitor of another one: %d %s", status, text)
	}
	alpha.ok("revoke", "gamma")
	beta.eventually("visitors of a revoked site see nothing", func() bool {
		status, _ := ask("/v1/node", keys[gamma])
		return status == http.StatusUnauthorized
	})
}
