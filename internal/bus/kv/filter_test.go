package kv

import (
	"slices"
	"strings"
	"testing"
)

func TestOnePatternForSeveralFilters(t *testing.T) {
	for _, c := range []struct{ filters, want string }{
		{"a.>", "a.>"},
		{"a.b a.b", "a.b"},
		{"a.b.* a.c.*", "a.*.*"},
		{"session.> blocker.>", "*.>"},
		{"session.h.* blocker.h.>", "*.h.>"},
		{"session.h.* blocker.h.r.>", "*.h.>"},
		{"a.b a.b.c.d", "a.>"},
		{"a.b.c.d a.b", "a.>"},
		{"a b.c", ">"},
		{"a.b a.c x.b", "*.*"},
		{"> a.b", ">"},
	} {
		filters := strings.Fields(c.filters)
		got := cover(filters)
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.filters, got, c.want)
		}
		for _, f := range filters {
			for _, token := range []string{"x", "x.y.z"} {
				subject := strings.NewReplacer("*", "x", ">", token).Replace(f)
				if !matches(f, subject) || !matches(got, subject) {
					t.Errorf("%s of %s is not matched by %s and %s", subject, c.filters, f, got)
				}
			}
		}
	}
	others := map[string][]string{"a.*": {"a", "a.b.c", "b.a"}, "a.>": {"a", "b.a"}, "a": {"a.b"}, "a.b.c": {"a.b"}}
	for pattern, subjects := range others {
		if slices.ContainsFunc(subjects, func(s string) bool { return matches(pattern, s) }) {
			t.Errorf("%s matches one of %s", pattern, subjects)
		}
	}
}
