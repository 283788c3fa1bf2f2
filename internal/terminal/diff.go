package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Change is one field in which two documents differ. An entry of a list has the path of its id.
type Change struct {
	Path   string          `json:"path"`             // such as turn.id
	Before json.RawMessage `json:"before,omitempty"` // none: the field was added
	After  json.RawMessage `json:"after,omitempty"`  // none: it was removed
}

// Difference returns the fields in which two documents differ, in the order of their paths.
func Difference(before, after *session.State) ([]Change, error) {
	was, err := fields(before)
	if err != nil {
		return nil, err
	}
	is, err := fields(after)
	if err != nil {
		return nil, err
	}
	paths := slices.AppendSeq(slices.Collect(maps.Keys(was)), maps.Keys(is))
	slices.Sort(paths)
	changes := []Change{}
	for _, path := range slices.Compact(paths) {
		if !bytes.Equal(was[path], is[path]) {
			changes = append(changes, Change{Path: path, Before: was[path], After: is[path]})
		}
	}
	return changes, nil
}

// fields returns the values of a document that are not objects, by path.
func fields(s *session.State) (map[string]json.RawMessage, error) {
	body, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("document of %s: %w", s.Ref(), err)
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	// a greater number than a float64 can hold stays as it is
	dec.UseNumber()
	var doc map[string]any
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("document of %s: %w", s.Ref(), err)
	}
	all := map[string]json.RawMessage{}
	return all, flatten(all, "", doc)
}

// flatten adds the values below a value. A list whose entries have ids is a set of them; another list is one value.
func flatten(all map[string]json.RawMessage, path string, value any) error {
	var below map[string]any
	switch v := value.(type) {
	case nil:
		// an empty field
		return nil
	case map[string]any:
		below = v
	case []any:
		below = byID(v)
	}
	if len(below) == 0 {
		body, err := json.Marshal(value)
		all[path] = body
		return err
	}
	for name, v := range below {
		if path != "" {
			name = path + "." + name
		}
		if err := flatten(all, name, v); err != nil {
			return err
		}
	}
	return nil
}

// byID returns the entries of a list by their ids; none if an entry has no id, or two have the same.
func byID(list []any) map[string]any {
	all := map[string]any{}
	for _, entry := range list {
		object, _ := entry.(map[string]any)
		id, _ := object["id"].(string)
		// the id of a call may be that of a turn
		if entity, _ := object["entity"].(string); entity != "" {
			id = strings.Join([]string{entity, id}, " ")
		}
		if id == "" || all[id] != nil {
			return nil
		}
		all[id] = entry
	}
	return all
}

// Diff returns a table of changes.
func Diff(changes []Change, st Style) string {
	rows := make([][]Cell, len(changes))
	for i, c := range changes {
		colour := Wait
		switch {
		case len(c.Before) == 0:
			colour = Good
		case len(c.After) == 0:
			colour = Alarm
		}
		rows[i] = []Cell{{c.Path, colour}, {plainValue(c.Before), Plain}, {plainValue(c.After), Plain}}
	}
	return Table([]Column{{Name: "FIELD", Min: textMin, ID: true}, {Name: "BEFORE", Min: nameMin},
		{Name: "AFTER", Min: nameMin}}, rows, st)
}

// plainValue returns a value as text: a string without its quotes, "–" for none.
func plainValue(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return orDash(text)
	}
	return orDash(string(value))
}
