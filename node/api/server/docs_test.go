package server

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"gridnode/node/api"
)

// docs/api.md names every request, every code and every key.
func TestAPIPageIsComplete(t *testing.T) {
	b, err := os.ReadFile("../../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for pattern, h := range (&Server{}).routes() {
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
	for _, v := range []any{api.JobSpec{}, api.SubmitStored{}, api.SubmitReply{}, api.Job{}, api.Verdict{}, api.WhyReply{}, api.SiteInfo{}, api.Peer{}, api.Net{}, api.NetPeer{}, api.NetProblem{}, api.MessageCount{}, api.NodeInfo{}, api.GPUs{}, api.Scheduler{}, api.IDsRequest{}, api.JobsReply{}, api.SitesReply{}, api.FoundSite{}, api.FindSiteReply{}, api.CountersReply{}, api.BankAccount{}, api.BankReply{}, api.BankEntry{}, api.BankStatement{}, api.BankMove{}, api.Lease{}, api.LeaseRequest{}, api.LeaseChangeRequest{}, api.SiteLink{}, api.LinkRequest{}, api.DataInput{}, api.DataSet{}, api.DataSetsReply{}, api.DataSetRequest{}, api.DataSetReply{}, api.DataHolder{}, api.Member{}, api.MembersReply{}, api.InviteRequest{}, api.InviteReply{}, api.RevokeRequest{}, api.HoldersReply{}, api.User{}, api.UsersReply{}, api.Guest{}, api.GuestBan{}, api.Refusals{}, api.GuestsReply{}, api.GuestsChange{}, api.GuestsChanged{}, api.SettingChange{}, api.ReloadReply{}} {
		structure := reflect.TypeOf(v)
		for i := range structure.NumField() {
			key, _, _ := strings.Cut(structure.Field(i).Tag.Get("json"), ",")
			if !strings.Contains(text, "`"+key+"`") && !strings.Contains(text, `"`+key+`"`) {
				t.Errorf("no word about key %s of %s", key, structure.Name())
			}
		}
	}
}
