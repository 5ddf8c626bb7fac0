package slurm

import (
	"slices"
	"strings"
	"testing"

	"gridnode/grid"
)

func TestPartnersHaveTheirOwnOptions(t *testing.T) {
	c := Config{
		Work: "/srv", Partition: "main", Account: "us", Options: []string{"--constraint=ib"},
		Partners: map[string]Partner{"chemistry": {Account: "exchange", Options: []string{"--nice=100"}}, "id-of-one": {Partition: "guests"}},
	}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"":          "--partition=main --account=us --constraint=ib",
		"nobody":    "--partition=main --account=us --constraint=ib",
		"chemistry": "--partition=main --account=exchange --nice=100",
		"id-of-one": "--partition=guests --account=us --constraint=ib",
	} {
		if got := strings.Join(c.of(name).place(), " "); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	e := &Engine{cfg: c, guest: func(home grid.SiteID) string { return map[grid.SiteID]string{"a": "chemistry"}[home] }}
	for home, want := range map[grid.SiteID]string{"a": "chemistry", "b": "", "id-of-one": "id-of-one"} {
		if got := e.partner(home); got != want {
			t.Errorf("site %s is %q, want %q", home, got, want)
		}
	}
	if err := c.of("chemistry").explain(&refusal{"Invalid account or account/partition combination specified"}); !strings.Contains(err.Error(), "(slurm.partners.chemistry.account: ") {
		t.Error(err)
	}
	if err := c.explain(&refusal{"Invalid qos specification"}); !strings.Contains(err.Error(), "(slurm.qos: ") {
		t.Error(err)
	}
}

// What stands in the configuration reaches a command line only in the forms that are named.
func TestWhatIsWrongWithAPartnerNamesItsKey(t *testing.T) {
	for key, p := range map[string]Partner{
		"partition": {Partition: "a b"}, "account": {Account: "--wrap=x"}, "qos": {QOS: "x\ny"}, "options": {Options: []string{"--wrap=rm"}},
	} {
		c := Config{Work: "/srv", Partners: map[string]Partner{"them": p}}
		if err := c.Check(); err == nil || !strings.HasPrefix(err.Error(), "slurm.partners.them."+key+": ") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// Nothing of a job's own text is in the arguments of sbatch, whoever sent it.
func TestArgumentsHaveNothingOfTheJob(t *testing.T) {
	c := Config{Work: "/srv"}
	args := c.arguments("name.1", &note{Home: "--wrap=rm", Partner: "--wrap=rm", Tasks: 1, Each: 1}, "/srv/slurm")
	if i := slices.IndexFunc(args, func(a string) bool { return strings.Contains(a, "--wrap") }); i >= 0 {
		t.Errorf("%q", args[i])
	}
}
