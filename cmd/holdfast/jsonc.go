package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// errNoSettings says that a file is no JSON, also not one with comments.
var errNoSettings = errors.New("it is no JSON object, also not one with comments")

// withServer returns the settings of an editor with an agent. The settings are JSON that may have comments, and commas
// behind the last element. All bytes stay except those of the agent. An agent of this name keeps what else it has.
func withServer(old []byte, name string, s agentServer) ([]byte, error) {
	if len(bytes.TrimSpace(old)) == 0 {
		old = []byte("{}\n")
	}
	path := []string{"agent_servers", name}
	value, err := memberAt(old, path)
	if err != nil {
		return nil, err
	}
	if value == nil {
		return setMember(old, path, s)
	}
	if value[0] != '{' {
		return nil, fmt.Errorf("its agent %q is no object", name)
	}
	text := old
	for _, m := range []struct {
		name  string
		value any
	}{{"args", s.Args}, {"command", s.Command}, {"type", s.Type}} {
		if m.value == "" {
			continue
		}
		if text, err = setMember(text, append(slices.Clip(path), m.name), m.value); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// memberAt returns the value at a path of names, as plain JSON; nil without one.
func memberAt(text []byte, path []string) (json.RawMessage, error) {
	plain, err := plainJSON(text)
	if err != nil {
		return nil, err
	}
	at := place{0, len(plain)}
	for _, name := range path {
		_, members, err := objectAt(plain, at)
		if err != nil {
			return nil, err
		}
		next, ok := members[name]
		if !ok {
			return nil, nil
		}
		at = next
	}
	return json.RawMessage(bytes.TrimSpace(plain[at.begin:at.end])), nil
}

// setMember returns JSON with comments in which a member has this value. A member that is not there becomes the first
// one of its object. A text that has the value already is returned as it is.
func setMember(text []byte, path []string, value any) ([]byte, error) {
	plain, err := plainJSON(text)
	if err != nil {
		return nil, err
	}
	at := place{0, len(plain)}
	for depth, name := range path {
		open, members, err := objectAt(plain, at)
		if err != nil {
			return nil, err
		}
		next, ok := members[name]
		if !ok {
			for _, inner := range slices.Backward(path[depth+1:]) {
				value = map[string]any{inner: value}
			}
			line := "\n" + strings.Repeat("  ", depth+1) + oneLine(name) + ": " + indented(value, depth+1)
			if len(members) > 0 {
				line += ","
			} else if rest := plain[open:at.end]; rest[0] == '}' {
				line += "\n" + strings.Repeat("  ", depth)
			}
			return slices.Concat(text[:open], []byte(line), text[open:]), nil
		}
		at = next
	}
	var is, want any
	if json.Unmarshal(plain[at.begin:at.end], &is) != nil || json.Unmarshal([]byte(oneLine(value)), &want) != nil {
		return nil, errNoSettings
	}
	if reflect.DeepEqual(is, want) {
		return text, nil
	}
	return slices.Concat(text[:at.begin], []byte(indented(value, len(path))), text[at.end:]), nil
}

// place is where a value is in a text.
type place struct{ begin, end int }

// objectAt returns the place behind the brace of an object of plain JSON, and the places of the values of its members.
// A name that is there twice is an error: programs disagree on which one counts.
func objectAt(plain []byte, at place) (open int, members map[string]place, err error) {
	dec := json.NewDecoder(bytes.NewReader(plain[at.begin:at.end]))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return 0, nil, errNoSettings
	}
	open, members = at.begin+int(dec.InputOffset()), map[string]place{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return 0, nil, errNoSettings
		}
		name, _ := key.(string)
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return 0, nil, errNoSettings
		}
		if _, twice := members[name]; twice {
			return 0, nil, fmt.Errorf("it has %q twice", name)
		}
		end := at.begin + int(dec.InputOffset())
		members[name] = place{end - len(value), end}
	}
	return open, members, nil
}

// plainJSON returns JSON with spaces in place of comments and of commas behind a last element. All offsets stay.
func plainJSON(text []byte) ([]byte, error) {
	plain := bytes.Clone(text)
	// the last comma with nothing behind it, and what is in front of it
	comma, before := -1, byte(0)
	last := byte(0)
	for i := 0; i < len(plain); i++ {
		switch c := plain[i]; c {
		case ' ', '\t', '\r', '\n':
			continue
		case '/':
			end := commentEnd(plain, i)
			if end < 0 {
				return nil, errNoSettings
			}
			for ; i < end; i++ {
				if plain[i] != '\n' {
					plain[i] = ' '
				}
			}
			i--
			continue
		case '"':
			for i++; i < len(plain) && plain[i] != '"'; i++ {
				if plain[i] == '\\' {
					i++
				}
			}
			comma, last = -1, '"'
			continue
		case ',':
			comma, before = i, last
		case '}', ']':
			if comma >= 0 && !strings.ContainsRune("\x00{[,:", rune(before)) {
				plain[comma] = ' '
			}
			comma = -1
		default:
			comma = -1
		}
		last = plain[i]
	}
	if !json.Valid(plain) {
		return nil, errNoSettings
	}
	return plain, nil
}

// commentEnd returns where the comment that begins here ends; -1 if none begins here, or it has no end.
func commentEnd(text []byte, at int) int {
	switch rest := text[at:]; {
	case bytes.HasPrefix(rest, []byte("//")):
		if n := bytes.IndexByte(rest, '\n'); n >= 0 {
			return at + n
		}
		return len(text)
	case bytes.HasPrefix(rest, []byte("/*")):
		if n := bytes.Index(rest[2:], []byte("*/")); n >= 0 {
			return at + n + 4
		}
	}
	return -1
}

// oneLine returns a value as JSON without escapes of HTML.
func oneLine(v any) string { return encoded(v, "", "") }

// indented returns a value as JSON on lines of its own, as it is inside of an object of this depth.
func indented(v any, depth int) string { return encoded(v, strings.Repeat("  ", depth), "  ") }

func encoded(v any, prefix, indent string) string {
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	out.SetIndent(prefix, indent)
	// strings, and maps and lists of them: it cannot fail
	if out.Encode(v) != nil {
		return "null"
	}
	return strings.TrimSuffix(b.String(), "\n")
}
