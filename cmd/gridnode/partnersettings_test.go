package main

import (
	"strings"
	"testing"
)

func TestPartnersOfACluster(t *testing.T) {
	s, values, err := readSettings("f", []byte("slurm:\n  partition: main\n  partners:\n    chemistry:\n      account: exchange\n      options: [--nice=100, --constraint=ib]\n    physics:\n      partition: guests\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if p := s.slurm.Partners["chemistry"]; p.Account != "exchange" || strings.Join(p.Options, " ") != "--nice=100 --constraint=ib" || s.slurm.Partners["physics"].Partition != "guests" || s.slurm.Partition != "main" {
		t.Errorf("%+v", s.slurm)
	}
	if last := values[len(values)-1]; last.Key != "slurm.partners.physics.partition" || last.Origin != "f:8" {
		t.Errorf("%+v", last)
	}
	for text, want := range map[string]string{
		"slurm:\n  partners: 7\n":                                   "f:2: slurm.partners is a section",
		"slurm:\n  partners:\n    x: y\n":                           "f:3: slurm.partners.x: want its keys",
		"slurm:\n  partners:\n    x:\n      acount: y\n":            "f:4: unknown key slurm.partners.x.acount",
		"slurm:\n  partners:\n    x:\n      qos: y\n      qos: z\n": "f:5: slurm.partners.x.qos stands in line 4",
		"slurm:\n  partners:\n    x:\n      account: [y]\n":         "f:4: slurm.partners.x.account takes one value",
	} {
		if _, _, err := readSettings("f", []byte(text), nil); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
