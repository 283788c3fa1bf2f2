package kv

import "strings"

// cover returns one pattern that matches every subject that one of the patterns matches. It may match more.
func cover(patterns []string) string {
	all := strings.Split(patterns[0], ".")
	for _, p := range patterns[1:] {
		all = join(all, strings.Split(p, "."))
	}
	return strings.Join(all, ".")
}

// join returns the pattern that covers both, in tokens.
func join(a, b []string) []string {
	var both []string
	for i := range min(len(a), len(b)) {
		switch rest := a[i] == ">" || b[i] == ">"; {
		case rest, len(a) != len(b) && i == min(len(a), len(b))-1:
			return append(both, ">")
		case a[i] == b[i]:
			both = append(both, a[i])
		default:
			both = append(both, "*")
		}
	}
	return both
}

// matches reports whether a pattern matches a subject.
func matches(pattern, subject string) bool {
	ps, ss := strings.Split(pattern, "."), strings.Split(subject, ".")
	for i, p := range ps {
		switch {
		case p == ">":
			return len(ss) > i
		case i >= len(ss), p != "*" && p != ss[i]:
			return false
		}
	}
	return len(ps) == len(ss)
}
