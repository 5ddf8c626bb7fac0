package wire_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// TestGangRoundTrip: a gang comes back as it was; told to others, without pilots.
func TestGangRoundTrip(t *testing.T) {
	task := grid.TaskID{Job: grid.JobID{Hi: 1, Lo: 2}, Epoch: 3}
	g := &grid.Gang{Task: task, Each: 2, Parts: []grid.GangPart{
		{Site: "a", Processors: 4}, {Site: "b", Processors: 2, Pilot: grid.Pilot{Site: "b", Key: 9}},
	}}
	got, err := wire.GangFromProto(task, wire.GangProto(g, false))
	if err != nil || !reflect.DeepEqual(got, g) {
		t.Errorf("%+v, %v", got, err)
	}
	if told := wire.GangProto(g, true); told.Parts[1].Pilot != "" || told.Parts[1].Key != 0 {
		t.Errorf("others are told %v", told)
	}
	for name, p := range map[string]*wirepb.Gang{
		"no parts":       {Each: 1},
		"nothing each":   {Parts: []*wirepb.GangPart{{Site: "a", Processors: 1}}},
		"half a task":    {Each: 2, Parts: []*wirepb.GangPart{{Site: "a", Processors: 3}}},
		"no site":        {Each: 1, Parts: []*wirepb.GangPart{{Processors: 3}}},
		"long site":      {Each: 1, Parts: []*wirepb.GangPart{{Site: strings.Repeat("x", 129), Processors: 3}}},
		"too many tasks": {Each: 1, Parts: []*wirepb.GangPart{{Site: "a", Processors: grid.RanksMax - 24}, {Site: "b", Processors: 25}}},
		"too many parts": {Each: 1, Parts: make([]*wirepb.GangPart, 65)},
	} {
		if _, err := wire.GangFromProto(task, p); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %v, want it refused", name, err)
		}
	}
}

// TestDividedJob: what a job says about co-allocation travels with it, within bounds.
func TestDividedJob(t *testing.T) {
	j := &grid.Job{
		ID: grid.JobID{Hi: 1, Lo: 2}, Home: "h", Resources: grid.Resources{Processors: 3}, Tasks: 3, Estimate: 1, Deadline: grid.Never, Budget: grid.NoBudget,
		Coallocate: &grid.Coallocation{Components: "1@a,2", Count: "2..4", PerSite: 1, SitesMax: 2, Policy: "fcm", CCR: -1},
		Inputs:     []grid.DataSet{{Name: "x", Size: grid.SizeUnknown}, {Name: "y/z", Size: 5}},
	}
	got, err := wire.JobFromProto(wire.JobProto(j))
	if err != nil || !reflect.DeepEqual(got.Coallocate, j.Coallocate) || !reflect.DeepEqual(got.Inputs, j.Inputs) {
		t.Errorf("%+v, %+v, %v", got.Coallocate, got.Inputs, err)
	}
	many := *j
	many.Inputs = append(many.Inputs, grid.DataSet{Name: "x", Size: 1})
	if _, err := wire.JobFromProto(wire.JobProto(&many)); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("an input stands there twice: %v", err)
	}
	for name, c := range map[string]grid.Coallocation{
		"long components": {Components: strings.Repeat("1,", 20_000)},
		"long policy":     {Policy: strings.Repeat("x", 33)},
		"long count":      {Count: strings.Repeat("1", 33)},
		"negative":        {PerSite: -1},
		"too many sites":  {SitesMax: 2000},
	} {
		bad := *j
		bad.Coallocate = &c
		if _, err := wire.JobFromProto(wire.JobProto(&bad)); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %v, want it refused", name, err)
		}
	}
}
