package reference

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Where the comments that become descriptions are read from: the import path of this folder, and the way to pkg/events.
const (
	importPath   = "github.com/holdfast-dev/holdfast/internal/reference"
	eventsFolder = "../../pkg/events"
)

// schemaBase begins the ids of the schemas. They name them; nothing need be there.
const schemaBase = "https://github.com/holdfast-dev/holdfast/schemas/"

func newReflector() (*jsonschema.Reflector, error) {
	r := &jsonschema.Reflector{
		Anonymous:                  true,
		AllowAdditionalProperties:  true, // readers ignore what they do not know
		RequiredFromJSONSchemaTags: true, // the contract says what is required, see require
		DoNotReference:             true,
		ExpandedStruct:             true,
		Mapper:                     special,
	}
	if err := r.AddGoComments(importPath, eventsFolder); err != nil {
		return nil, fmt.Errorf("comments of pkg/events: %w", err)
	}
	return r, nil
}

// special is the schema of the types that encode themselves; nil for all others.
func special(t reflect.Type) *jsonschema.Schema {
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		// any JSON
		return &jsonschema.Schema{}
	case strings.HasPrefix(t.Name(), "Setting[") && t.PkgPath() == reflect.TypeFor[events.Policy]().PkgPath():
		value, _ := t.FieldByName("Value")
		types := map[reflect.Kind]string{
			reflect.Bool:    "boolean",
			reflect.String:  "string",
			reflect.Int:     "integer",
			reflect.Int64:   "integer",
			reflect.Float64: "number",
		}
		return &jsonschema.Schema{Extras: map[string]any{"type": []string{types[value.Type.Kind()], "null"}}}
	}
	return nil
}

// dataSchema is the schema of the data of one kind.
func dataSchema(r *jsonschema.Reflector, s events.Spec) (*jsonschema.Schema, error) {
	schema := r.Reflect(s.Zero)
	schema.ID = jsonschema.ID(schemaBase + string(s.Kind) + ".json")
	schema.Title = events.TypePrefix + string(s.Kind)
	schema.Description = s.Doc
	list, ok := dataOf[s.Kind]
	if !ok {
		return nil, fmt.Errorf("%s: the contract's table in contract.go has no line for it", s.Kind)
	}
	if err := require(schema, parseFields(list)); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Kind, err)
	}
	// a change of provider alone brings no policy
	if s.Kind == "session.configured" {
		nullable(schema, "policy")
	}
	return schema, nil
}

// require writes down what the contract requires, and says where contract and struct differ.
func require(schema *jsonschema.Schema, fields []field) error {
	var names []string
	for _, f := range fields {
		names = append(names, f.name)
		property, ok := schema.Properties.Get(f.name)
		if !ok {
			return fmt.Errorf("field %s of the contract is not in the struct", f.name)
		}
		if !f.optional {
			schema.Required = append(schema.Required, f.name)
		}
		if len(f.fields) == 0 {
			continue
		}
		if f.list {
			property = property.Items
		}
		if err := require(property, f.fields); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	for pair := schema.Properties.Oldest(); pair != nil; pair = pair.Next() {
		if !slices.Contains(names, pair.Key) {
			return fmt.Errorf("field %s of the struct is not in the contract", pair.Key)
		}
	}
	return nil
}

func nullable(schema *jsonschema.Schema, name string) {
	property, _ := schema.Properties.Get(name)
	schema.Properties.Set(name, &jsonschema.Schema{AnyOf: []*jsonschema.Schema{property, {Type: "null"}}})
}
