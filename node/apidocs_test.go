package node

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// docs/api.md names every request, every code and every key.
func TestAPIPageIsComplete(t *testing.T) {
	b, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for pattern, h := range (&API{}).routes() {
		if !strings.Contains(text, "`"+pattern) {
			t.Errorf("no word about %s", pattern)
		}
		for _, p := range h.parameters {
			if !strings.Contains(text, p) {
				t.Errorf("no word about parameter %s of %s", p, pattern)
			}
		}
	}
	for code := range httpStatus {
		if !strings.Contains(text, "`"+code+"`") {
			t.Errorf("no word about code %s", code)
		}
	}
	for _, v := range []any{JobSpec{}, SubmitStored{}, SubmitReply{}, Job{}, Verdict{}, WhyReply{}, SiteInfo{}, Peer{}, MessageCount{}, NodeInfo{}, IDsRequest{}, JobsReply{}, SitesReply{}, CountersReply{}, BankAccount{}, BankReply{}, BankEntry{}, BankStatement{}, BankMove{}, Lease{}, LeaseRequest{}, LeaseChangeRequest{}, SiteLink{}, LinkRequest{}, DataInput{}, DataSet{}, DataSetsReply{}, DataSetRequest{}, DataSetReply{}, DataHolder{}, HoldersReply{}} {
		structure := reflect.TypeOf(v)
		for i := range structure.NumField() {
			key, _, _ := strings.Cut(structure.Field(i).Tag.Get("json"), ",")
			if !strings.Contains(text, "`"+key+"`") && !strings.Contains(text, `"`+key+`"`) {
				t.Errorf("no word about key %s of %s", key, structure.Name())
			}
		}
	}
}
