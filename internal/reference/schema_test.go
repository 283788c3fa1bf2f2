package reference

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// compiled are the printed schemas, by kind.
func compiled(t *testing.T) map[events.Kind]*jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	byKind := make(map[events.Kind]*jsonschema.Schema)
	pages := printed(t)
	for _, s := range events.Table() {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(pages["schemas/"+string(s.Kind)+".json"]))
		if err != nil {
			t.Fatal(err)
		}
		id := schemaBase + string(s.Kind) + ".json"
		if err := c.AddResource(id, doc); err != nil {
			t.Fatal(err)
		}
		if byKind[s.Kind], err = c.Compile(id); err != nil {
			t.Fatal(err)
		}
	}
	return byKind
}

// fill sets every field of a struct, so that its JSON has every key.
func fill(v reflect.Value) {
	switch x := v.Addr().Interface().(type) {
	case *json.RawMessage:
		*x = json.RawMessage(`{"a":[1,null]}`)
		return
	case *time.Time:
		*x = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Struct:
		for i := range v.NumField() {
			// of a Setting: that would be no value
			if v.Type().Field(i).Name != "Null" {
				fill(v.Field(i))
			}
		}
	default:
		panic("a field of a kind without a sample: " + v.Type().String())
	}
}

// data is what a fact's data is on the wire, as plain JSON values.
func data(t *testing.T, fact any) map[string]any {
	t.Helper()
	body, err := json.Marshal(fact)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return v.(map[string]any)
}

func full(t *testing.T, s events.Spec) map[string]any {
	v := reflect.New(reflect.TypeOf(s.Zero)).Elem()
	fill(v)
	return data(t, v.Interface())
}

// Encoded facts are valid under the printed schemas: with every field, with no field set, and with unknown fields.
func TestFactsFitTheirSchemas(t *testing.T) {
	for kind, schema := range compiled(t) {
		s := events.Lookup(kind)
		all := full(t, *s)
		if len(all) != reflect.TypeOf(s.Zero).NumField() {
			t.Errorf("%s: the sample has %d fields of %d", kind, len(all), reflect.TypeOf(s.Zero).NumField())
		}
		if err := schema.Validate(all); err != nil {
			t.Errorf("%s with every field: %v", kind, err)
		}
		if err := schema.Validate(data(t, s.Zero)); err != nil {
			t.Errorf("%s with no field set: %v", kind, err)
		}
		all["nobody_knows"] = []any{"this"}
		if err := schema.Validate(all); err != nil {
			t.Errorf("%s with an unknown field: %v", kind, err)
		}
	}
}

// Each field without a question mark in the contract is required, each other is not, and each has a type.
func TestSchemasRefuse(t *testing.T) {
	for kind, schema := range compiled(t) {
		s := events.Lookup(kind)
		for _, f := range parseFields(dataOf[kind]) {
			without := maps.Clone(full(t, *s))
			delete(without, f.name)
			if err := schema.Validate(without); (err == nil) != f.optional {
				t.Errorf("%s without %s: %v", kind, f.name, err)
			}
			if slices.Contains([]string{"content", "input", "output", "options", "native"}, f.name) {
				// any JSON
				continue
			}
			with := full(t, *s)
			with[f.name] = map[string]any{"no": []any{"such"}}
			if err := schema.Validate(with); err == nil && f.name != "policy" {
				t.Errorf("%s with an object of nonsense as %s fits", kind, f.name)
			}
		}
		for _, other := range []any{nil, "x", []any{}, true} {
			if err := schema.Validate(other); err == nil {
				t.Errorf("%s: %v fits", kind, other)
			}
		}
	}
}

// A policy's field is a value or null, of its own type.
func TestPolicyInTheSchema(t *testing.T) {
	schema := compiled(t)["session.configured"]
	for _, c := range []struct {
		policy string
		fits   bool
	}{
		{`{}`, true},
		{`null`, true},
		{`{"auto_retry":null,"retry_max":null,"resume":null,"compaction_threshold":null}`, true},
		{`{"auto_retry":false,"retry_max":3,"resume":"hold","compaction_threshold":0.5,"stall_after_s":60}`, true},
		{`{"auto_retry":"no"}`, false},
		{`{"retry_max":1.5}`, false},
		{`{"resume":1}`, false},
		{`[]`, false},
	} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(`{"by":"ada","policy":` + c.policy + `}`))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); (err == nil) != c.fits {
			t.Errorf("%s: %v", c.policy, err)
		}
	}
}

// Units and meanings are in the pages: they come from the comments of pkg/events.
func TestDescriptionsComeAlong(t *testing.T) {
	page := string(printed(t)["schemas/turn.failed.json"])
	for _, want := range []string{`"$schema": "https://json-schema.org/draft/2020-12/schema"`,
		"The turn ended in an error.", "the delay that the provider asks for, milliseconds"} {
		if !strings.Contains(page, want) {
			t.Errorf("schemas/turn.failed.json says nothing of %q", want)
		}
	}
}
