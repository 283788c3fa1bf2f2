package reference

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/invopop/jsonschema"

	"github.com/holdfast-dev/holdfast/internal/sidecar"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// openRPCVersion is the version of the format of sidecar.json.
const openRPCVersion = "1.3.2"

const sidecarText = "JSON-RPC 2.0 over the standard streams or a unix socket: one message a line, UTF-8, without " +
	"batches. Methods with x-caller agent are called by the agent, the others by the sidecar, which waits for the " +
	"reply of the agent. A method without a result is a notification; x-notification marks the agent's methods that " +
	"may be one. Requests run at the same time: wait for a reply before what depends on it. A program decides by " +
	"error.data.error, one of components.errors. The error of an agent's reply may have data.failure or data.provider."

// leastRequired are the required fields of types that the log stores with more fields than an agent has to send.
var leastRequired = map[reflect.Type][]string{
	reflect.TypeFor[events.Question](): {"id", "question"},
	reflect.TypeFor[events.Option]():   {"label"},
	reflect.TypeFor[events.Tokens]():   nil,
	reflect.TypeFor[events.Answer]():   {"question"},
}

// newSidecarReflector returns a reflector for the types of the sidecar. It is strict about what the sidecar reads. A
// later version may write more fields.
func newSidecarReflector(strict bool) (*jsonschema.Reflector, error) {
	r := &jsonschema.Reflector{Anonymous: true, DoNotReference: true, ExpandedStruct: true,
		AllowAdditionalProperties: !strict}
	for _, folder := range []string{"../sidecar", eventsFolder, "../../pkg/session"} {
		if err := r.AddGoComments(importPath, folder); err != nil {
			return nil, fmt.Errorf("comments of %s: %w", folder, err)
		}
	}
	// without the table, which would be asked again for the same type
	plain := *r
	plain.Mapper = special
	r.Mapper = func(t reflect.Type) *jsonschema.Schema {
		if t == reflect.TypeFor[session.State]() {
			return &jsonschema.Schema{Type: "object",
				Description: "The document of a session: docs/contract.md, section 3."}
		}
		if required, ok := leastRequired[t]; ok {
			inner := plain
			inner.Mapper = func(u reflect.Type) *jsonschema.Schema {
				if u != t {
					return r.Mapper(u)
				}
				return nil
			}
			s := inner.ReflectFromType(t)
			s.Version, s.Required = "", required
			return s
		}
		return special(t)
	}
	return r, nil
}

// sidecarPage is the description of the sidecar's methods, as OpenRPC.
func sidecarPage() ([]byte, error) {
	reads, err1 := newSidecarReflector(true)
	writes, err2 := newSidecarReflector(false)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	var methods []object
	for _, v := range sidecar.Verbs() {
		m := object{"name": v.Name, "summary": v.Doc, "x-caller": "agent", "paramStructure": "by-name",
			"params": paramsOf(reads, v)}
		if v.Sidecar {
			m["x-caller"], m["params"] = "sidecar", paramsOf(writes, v)
		} else if v.Notification {
			m["x-notification"] = true
		}
		if v.Result != nil {
			m["result"] = object{"name": "result", "schema": schemaOf(writes, v.Result)}
		}
		methods = append(methods, m)
	}
	kinds := object{}
	for _, k := range sidecar.ErrorKinds() {
		kinds[k.Name] = object{"code": k.Code, "message": k.Text}
	}
	return page(object{
		"openrpc": openRPCVersion,
		"info": object{"title": "holdfast sidecar", "version": strconv.Itoa(sidecar.Protocol),
			"description": sidecarText},
		"methods": methods,
		"components": object{"errors": kinds,
			"schemas": object{"Error": schemaOf(writes, reflect.TypeFor[sidecar.Error]())}},
	})
}

// schemaOf returns the schema of a type.
func schemaOf(r *jsonschema.Reflector, t reflect.Type) *jsonschema.Schema {
	if t.Kind() == reflect.Interface {
		return &jsonschema.Schema{}
	}
	s := r.ReflectFromType(t)
	s.Version = ""
	return s
}

// paramsOf returns the params of a method, one for each field of its object.
func paramsOf(r *jsonschema.Reflector, v sidecar.Verb) []object {
	s := schemaOf(r, v.Params)
	list := []object{}
	if s.Properties == nil {
		return list
	}
	for pair := s.Properties.Oldest(); pair != nil; pair = pair.Next() {
		p := object{"name": pair.Key, "schema": pair.Value}
		if slices.Contains(s.Required, pair.Key) {
			p["required"] = true
		}
		list = append(list, p)
	}
	return list
}
