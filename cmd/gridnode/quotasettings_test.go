package main

import (
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/node/quota"
)

func TestLimitsOfUsersAreRead(t *testing.T) {
	s, values, err := readSettings("f", []byte("users:\n  users: [ann]\n  everyone:\n    max-jobs: 100\n    spend: 2.5/30d\n  accounts:\n    ann:\n      processors: 8\n      spend: none\n    \"1000\":\n      running: none\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	ann, other := s.quotas.Of("ann"), s.quotas.Of("1000")
	if ann != (quota.Limits{Jobs: 100, Processors: 8, Share: 1, Spend: quota.Spend{Span: quota.None}}) || other.Running != quota.None || other.Spend != (quota.Spend{Credits: 2_500_000, Span: 30 * grid.Day}) {
		t.Errorf("%+v, %+v", ann, other)
	}
	if text := other.Spend.String(); text != "2.5/30d" {
		t.Errorf("%q", text)
	}
	if last := values[len(values)-1]; last.Key != "users.accounts.1000.running" || last.Origin != "f:11" || !reloads(last.Key) || reloads("users.users") {
		t.Errorf("%+v", last)
	}
	for text, want := range map[string]string{
		"users:\n  everyone: 7\n":                                               "f:2: users.everyone is a section",
		"users:\n  accounts:\n    x: y\n":                                       "f:3: users.accounts.x: want the name of an account",
		"users:\n  everyone:\n    max-job: 3\n":                                 "f:3: unknown key users.everyone.max-job",
		"users:\n  everyone:\n    max-jobs: 3\n    max-jobs: 4\n":               "f:4: users.everyone.max-jobs stands in line 3",
		"users:\n  everyone:\n    max-jobs: 0\n":                                "users.everyone.max-jobs (f:3)",
		"users:\n  accounts:\n    x:\n      spend: 100\n":                       `users.accounts.x.spend (f:4): "100": want credits in a span`,
		"users:\n  accounts:\n    x:\n      spend: 100/1s\n":                    "users.accounts.x.spend (f:4)",
		"users:\n  accounts:\n    x:\n      processors: [1, 2]\n":               "f:4: users.accounts.x.processors takes one value",
		"users:\n  accounts:\n    x:\n      processors: many\n":                 "users.accounts.x.processors (f:4)",
		"users:\n  accounts:\n    x:\n      spend: 1/30d\n      spend: 2/30d\n": "f:5: users.accounts.x.spend stands in line 4",
	} {
		if _, _, err := readSettings("f", []byte(text), nil); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
