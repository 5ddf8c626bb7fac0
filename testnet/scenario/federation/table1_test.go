package federation

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMatchLogs: logs are told by their names.
func TestMatchLogs(t *testing.T) {
	for name, want := range map[string]int{
		"CTC-SP2-1996-3.1-cln.swf.gz": 0, "KTH-SP2-1996-2.1-cln.swf.gz": 1, "LANL-CM5-1994-4.1-cln.swf.gz": 2, "LANL-O2K-1999-2.swf.gz": 3,
		"NASA-iPSC-1993-3.1-cln.swf.gz": 4, "SDSC-Par-1996-3.1-cln.swf.gz": 5, "SDSC-BLUE-2000-4.2-cln.swf.gz": 6, "SDSC-SP2-1998-4.2-cln.swf.gz": 7,
		"SDSC-DS-2004-2.1-cln.swf.gz": -1, "RICC-2010-2.swf.gz": -1,
	} {
		if got := siteOfLog(filepath.Join("SDSC", "CTC", name)); got != want {
			t.Errorf("%s is of site %d, want %d", name, got, want)
		}
	}
	dir := t.TempDir()
	for _, name := range []string{"KTH-SP2-1996-2.1-cln.swf.gz", "KTH-SP2-1996-2.swf", "README.md", "CTC.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	logs, err := matchLogs([]string{dir})
	if err != nil || logs[1] != filepath.Join(dir, "KTH-SP2-1996-2.1-cln.swf.gz") || logs[0] != "" {
		t.Errorf("logs %v, error %v: want the published one for KTH and none for CTC", logs, err)
	}
}
