package corpus

import (
	"reflect"
	"strings"
	"testing"
)

// What Go's fuzzer writes is read as it was.
func TestLine(t *testing.T) {
	line, err := Line([]byte("go test fuzz v1\n[]byte(\"a\\x00, \\\"\")\nstring(\"b\\n\")\nbyte('\\xff')\n"))
	if err != nil || strings.Contains(line, "\n") {
		t.Fatalf("%q, %v", line, err)
	}
	got, err := values(line)
	if want := []any{[]byte("a\x00, \""), "b\n", byte(0xff)}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

// What is no input is an error.
func TestLineRefuses(t *testing.T) {
	for _, text := range []string{
		"", "go test fuzz v2\n[]byte(\"a\")\n", "go test fuzz v1\n[]byte(\"a)\n", "go test fuzz v1\n7\n", "go test fuzz v1\nbyte(x)\n",
		"go test fuzz v1\nfloat64(7)\n", "go test fuzz v1\nbyte(7)\n",
	} {
		if line, err := Line([]byte(text)); err == nil {
			t.Errorf("%q is %q", text, line)
		}
	}
}

// A target's file lies where its package lies in the module.
func TestPath(t *testing.T) {
	path, err := Path(".", "FuzzA")
	if err != nil || !strings.HasSuffix(path, "/test/fuzz/corpus/internal/corpus/FuzzA.txt") {
		t.Errorf("%s, %v", path, err)
	}
	if path, err := Path(t.TempDir(), "FuzzA"); err == nil {
		t.Errorf("outside of any module it is %s", path)
	}
}
