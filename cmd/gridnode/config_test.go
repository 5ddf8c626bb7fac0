package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"gridnode/grid"
	"gridnode/internal/lrms"
	"gridnode/market"
)

// clearEnvironment removes GRIDNODE_* for the length of a test.
func clearEnvironment(t *testing.T) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, value, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "GRIDNODE_") {
			t.Setenv(name, value) // so that it is put back
			os.Unsetenv(name)
		}
	}
}

func homeWith(t *testing.T, text string) string {
	t.Helper()
	clearEnvironment(t)
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, configFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return home
}

func TestSettingsPrecedence(t *testing.T) {
	home := homeWith(t, "site:\n  price: 0.25\n  queue: fcfs\n  speed: 700\n  name: file\n")
	t.Setenv("GRIDNODE_SITE_SPEED", "800")
	t.Setenv("GRIDNODE_SITE_NAME", "environment")
	cmd := &cobra.Command{}
	addSettingFlags(cmd)
	if err := cmd.ParseFlags([]string{"--site", "flag", "--join", "/ip4/127.0.0.1/tcp/1/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"}); err != nil {
		t.Fatal(err)
	}
	s, values, err := loadSettings(home, cmd.Flags())
	if err != nil {
		t.Fatal(err)
	}
	if s.name != "flag" || s.rating.Speed != 800 || s.price != grid.Credit/4 || s.discipline != lrms.FCFS || s.foreign || len(s.join) != 1 {
		t.Errorf("settings %+v", s)
	}
	origins := make(map[string]string)
	for _, e := range values {
		origins[e.Key] = e.Origin
	}
	for key, want := range map[string]string{
		"site.name": "--site", "site.speed": "GRIDNODE_SITE_SPEED", "site.price": filepath.Join(home, configFile) + ":2", "foreign": "default",
	} {
		if origins[key] != want {
			t.Errorf("origin of %s is %q, want %q", key, origins[key], want)
		}
	}
}

func TestSettingsRefuse(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"unknown key", "site:\n  pirce: 1\n", "config.yaml:2: unknown key site.pirce; did you mean site.price?"},
		{"unknown section", "market:\n  placement: paper\nnetwrk:\n  join: []\n", "config.yaml:3: unknown key netwrk"},
		{"unknown top key", "foriegn: allow\n", "did you mean foreign?"},
		{"section as value", "site: 3\n", "site is a section"},
		{"key as section", "foreign:\n  x: 1\n", "foreign takes a value"},
		{"twice", "foreign: deny\nforeign: allow\n", "already"},
		{"list for a value", "site:\n  name: [a, b]\n", "takes one value"},
		{"not YAML", "site: [\n", "yaml"},
		{"a list", "- a\n", "want lines of the form key: value"},
		{"negative price", "site:\n  price: -1\n", "site.price"},
		{"too many processors", "site:\n  processors: 16777217\n", "want a whole number from 0 to 16777216"},
		{"speed 0", "site:\n  speed: 0\n", "site.speed"},
		{"bad name", "site:\n  name: a b\n", "site.name"},
		{"bad cost model", "site:\n  cost: free\n", "want paper or processor-time"},
		{"DNS name", "network:\n  listen: [/dns4/example.org/tcp/1]\n", "a name is no address to listen on"},
		{"announced without port", "network:\n  announce: [example.org]\n", "want HOST:PORT"},
		{"relay", "network:\n  relay: yes please\n", "want use, offer or off"},
		{"peer without ID", "network:\n  join: [/ip4/127.0.0.1/tcp/1]\n", "does not say which node"},
		{"no address", "network:\n  listen: []\n", "no address to listen on"},
		{"negative time", "job:\n  time: -5m\n", "job.time"},
		{"bad level", "log:\n  level: loud\n", "want debug, info, warn or error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := loadSettings(homeWith(t, tt.text), nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%q: %v, want %q in it", tt.text, err, tt.want)
			}
		})
	}
}

func TestSettingsReportsAllProblems(t *testing.T) {
	_, _, err := loadSettings(homeWith(t, "site:\n  price: x\n  queue: lifo\n"), nil)
	if err == nil || !strings.Contains(err.Error(), "site.price") || !strings.Contains(err.Error(), "site.queue") {
		t.Errorf("%v, want both problems", err)
	}
}

// TestSettingsReportsAllWrongKeys: keys that are unknown, stand there twice or have the wrong
// form are reported together with wrong values.
func TestSettingsReportsAllWrongKeys(t *testing.T) {
	_, _, err := loadSettings(homeWith(t, "site:\n  pirce: 1\n  name: [a, b]\n  queue: lifo\nforeign: deny\nforeign: allow\nnetwrk: 3\n"), nil)
	for _, want := range []string{":2: unknown key site.pirce", ":3: site.name", "site.queue", ":6: foreign stands in line 5", ":7: unknown key netwrk"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
}

func TestSettingsWithoutHome(t *testing.T) {
	if _, _, err := loadSettings(t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), "gridnode init") {
		t.Errorf("%v, want advice to run init", err)
	}
}

func TestNewFileReadsBack(t *testing.T) {
	clearEnvironment(t)
	_, values, err := readSettings("x", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range values {
		if values[i].Key == "log.file" {
			values[i].Value = "a: b # c" // needs quotes
		}
	}
	text := newFile(values)
	_, again, err := readSettings("x", text, nil)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	for i := range values {
		if again[i].Value != values[i].Value || !strings.HasPrefix(again[i].Origin, "x:") {
			t.Errorf("%s: %q from %s, want %q from the file", values[i].Key, again[i].Value, again[i].Origin, values[i].Value)
		}
	}
}

// Each key of what init writes can be set: some sections stand there in two places.
func TestEditFileFindsEachKey(t *testing.T) {
	clearEnvironment(t)
	_, values, err := readSettings("x", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	text := newFile(values)
	for i := range values {
		key, err := findSetting(values[i].Key)
		if err != nil {
			t.Fatal(err)
		}
		edited, err := editFile("x", text, key, strings.Trim(values[i].Value, "[]"))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := readSettings("x", edited, nil); err != nil {
			t.Errorf("%s was set, and %v", key.key, err)
		}
	}
}

func TestEditFileKeepsComments(t *testing.T) {
	clearEnvironment(t)
	text := []byte("# my site\nsite:\n  # dear\n  price: 3 # really\nnetwork:\n")
	for _, tt := range []struct{ key, value string }{{"site.price", "0.5"}, {"network.join", "/ip4/127.0.0.1/tcp/1/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"}, {"foreign", "allow"}, {"site.name", "007"}} {
		key, err := findSetting(tt.key)
		if err != nil {
			t.Fatal(err)
		}
		if text, err = editFile("x", text, key, tt.value); err != nil {
			t.Fatal(err)
		}
	}
	s, _, err := readSettings("x", text, nil)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if s.price != grid.Credit/2 || !s.foreign || len(s.join) != 1 || s.name != "007" {
		t.Errorf("settings %+v after editing to\n%s", s, text)
	}
	for _, comment := range []string{"# my site", "# dear", "# really"} {
		if !strings.Contains(string(text), comment) {
			t.Errorf("%q is gone from\n%s", comment, text)
		}
	}
}

// TestPricingSettings: prices are positive, and the bounds of one that follows demand
// fit each other whatever the order they were set in.
func TestPricingSettings(t *testing.T) {
	demand := "site:\n  price: 2\nmarket:\n  pricing: demand\n"
	s, _, err := loadSettings(homeWith(t, demand+"  price-floor: 1.5\n  price-step: 10\n  price-interval: 30m\n  price-target: 60\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := market.Demand{Floor: 3 * grid.Credit / 2, Step: 100, Interval: 30 * grid.Minute, Target: 600}
	if s.pricing != market.PricingDemand || s.demand != want {
		t.Errorf("pricing %v, %+v, want demand, %+v", s.pricing, s.demand, want)
	}
	for _, tt := range []struct{ text, want string }{
		{"site:\n  price: 0\n", "site.price"},
		{"site:\n  price: -1\n", "site.price"},
		{"site:\n  price: 99999999999999\n", "site.price"},
		{"market:\n  pricing: auction\n", "market.pricing"},
		{demand + "  price-floor: 0\n", "market.price-floor"},
		{demand + "  price-floor: 2.5\n", "floor"},
		{demand + "  price-ceiling: 1.5\n", "ceiling"},
		{demand + "  price-step: 51\n", "market.price-step"},
		{demand + "  price-interval: 30s\n", "interval"},
		{demand + "  price-target: 100\n", "market.price-target"},
	} {
		if _, _, err := loadSettings(homeWith(t, tt.text), nil); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: error %v, want one about %s", tt.text, err, tt.want)
		}
	}
	if _, _, err := loadSettings(homeWith(t, "site:\n  price: 9\nmarket:\n  price-ceiling: 1\n"), nil); err != nil {
		t.Errorf("bounds that nobody uses: %v", err)
	}
}

// What a list holds is read as it was written, whatever YAML makes of such text elsewhere.
func TestListsAreReadAsWritten(t *testing.T) {
	for _, value := range []string{"*", "@cluster", "ann,*,@cluster", "a: b", "x#y", "710001", "/ip4/127.0.0.1/tcp/1,b"} {
		var document struct{ K []string }
		err := yaml.Unmarshal([]byte("k: "+yamlList(value)+"\n"), &document)
		if got := strings.Join(document.K, ","); err != nil || got != value {
			t.Errorf("%q is written %s and read %q, %v", value, yamlList(value), got, err)
		}
	}
}
