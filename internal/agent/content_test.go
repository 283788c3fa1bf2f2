package agent

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParseContent(t *testing.T) {
	for name, want := range map[string]Content{"none": ContentNone, "titles": ContentTitles, "full": ContentFull} {
		if got, err := ParseContent(name); got != want || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"", "all", "Full", strings.Repeat("x", 1<<20)} {
		if got, err := ParseContent(name); err == nil || len(err.Error()) > 200 {
			t.Errorf("%.20q: %q, %v", name, got, err)
		}
	}
}

// TestLevels checks what each level stores of each sort of content.
func TestLevels(t *testing.T) {
	input := json.RawMessage(`{"command":"rm -r /"}`)
	for level, want := range map[Content]string{
		ContentNone:   `|||||""`,
		ContentTitles: `a title|a text|{"command":"rm -r /"}|||""`,
		"":            `a title|a text|{"command":"rm -r /"}|||""`,
		ContentFull:   `a title|a text|{"command":"rm -r /"}|"out"||"a message"`,
	} {
		got := strings.Join([]string{level.Title("a title"), level.Text("a text"), string(level.Input(input)),
			string(level.Output(json.RawMessage(`"out"`))), string(level.Input(json.RawMessage("null"))),
			string(level.Message("a message"))}, "|")
		if got != want {
			t.Errorf("%q stores %s, want %s", level, got, want)
		}
	}
}

// TestLongInput: the level full stores input whole that the level titles cuts.
func TestLongInput(t *testing.T) {
	input := json.RawMessage(`"` + strings.Repeat("x", textBytesMax) + `"`)
	if got := ContentFull.Input(input); string(got) != string(input) {
		t.Errorf("full stores %d of %d bytes", len(got), len(input))
	}
	if got := ContentTitles.Input(input); len(got) > textBytesMax {
		t.Errorf("titles stores %d bytes", len(got))
	}
}

// TestLimits checks that content of any length and any bytes fits its limit, and is valid JSON and UTF-8.
func TestLimits(t *testing.T) {
	for _, unit := range []string{"x", "\x00", "\"", "\xff", "ü", "漢", "\u2028", "{", "\n"} {
		for _, n := range []int{0, 1, 66, 100, 199, 200, 201, 2 << 10, 16 << 10, 64 << 10, 1 << 17} {
			text := strings.Repeat(unit, n)
			if got := ContentTitles.Title(text); len(got) > titleBytesMax || !utf8.ValidString(got) ||
				strings.ContainsAny(got, "\n\x00") {
				t.Errorf("%q × %d: a title of %d bytes", unit, n, len(got))
			}
			if got := ContentTitles.Text(text); len(got) > textBytesMax || !utf8.ValidString(got) {
				t.Errorf("%q × %d: a text of %d bytes", unit, n, len(got))
			}
			for what, c := range map[string]struct {
				raw json.RawMessage
				max int
			}{
				"message": {ContentFull.Message(text), longBytesMax},
				"output":  {ContentFull.Output(json.RawMessage(text)), longBytesMax},
				"input":   {ContentFull.Input(json.RawMessage(text)), inputBytesMax},
				"short":   {ContentTitles.Input(json.RawMessage(text)), textBytesMax},
			} {
				if len(c.raw) > c.max || len(c.raw) > 0 && !json.Valid(c.raw) {
					t.Errorf("%s, %q × %d: %d bytes, %.40s", what, unit, n, len(c.raw), c.raw)
				}
			}
		}
	}
}
