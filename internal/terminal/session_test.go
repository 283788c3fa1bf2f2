package terminal

import "testing"

// TestShortNumber: a table shows the end of a long incarnation. Other texts are not cut.
func TestShortNumber(t *testing.T) {
	for is, want := range map[string]string{
		"": "", "7": "7", "12345678": "12345678", "123456789": "…456789", "1795483645962315": "…962315",
		"a long incarnation": "a long incarnation", "…79548364596231": "…79548364596231",
	} {
		if got := shortNumber(is); got != want {
			t.Errorf("%q is shown as %q, want %q", is, got, want)
		}
	}
}
