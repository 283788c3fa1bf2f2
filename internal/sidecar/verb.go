package sidecar

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Methods of the agent: the sidecar calls them.
const (
	methodTurn         = "turn"
	methodCompact      = "compact"
	methodOptions      = "options"
	methodTurnEnds     = "turn.cancelled"
	methodCompactEnds  = "compaction.cancelled"
	methodLost         = "lost"
	methodShutdown     = "shutdown"
	methodCancel       = "cancel"
	methodClose        = "close"
	errMissing         = "the field %s is missing or empty"
	errParamsNotObject = "params: want an object"
)

// Verb is one method.
type Verb struct {
	Name         string
	Doc          string
	Sidecar      bool         // the sidecar calls it; else the agent
	Notification bool         // it has no reply; of the agent's: it may have none
	Params       reflect.Type // an object
	Result       reflect.Type // nil: a notification

	read   func(json.RawMessage) (any, error)
	run    func(*agent, context.Context, any) (any, error)
	inline bool // in the order of the messages; it does not wait
}

// Verbs returns all methods.
func Verbs() []Verb {
	var list []Verb
	for _, v := range methods() {
		list = append(list, *v)
	}
	return append(list, calls()...)
}

// verb makes a method from a function.
func verb[P, R any](name, doc string, run func(*agent, context.Context, P) (R, error)) *Verb {
	return &Verb{Name: name, Doc: doc, Params: reflect.TypeFor[P](), Result: reflect.TypeFor[R](),
		read: func(raw json.RawMessage) (any, error) { return readParams[P](raw) },
		run: func(a *agent, ctx context.Context, params any) (any, error) {
			return run(a, ctx, params.(P))
		}}
}

// hint makes a method that runs in the order of the messages, and that may be a notification.
func hint[P any](name, doc string, run func(*agent, context.Context, P) (Nothing, error)) *Verb {
	v := verb(name, doc, run)
	v.inline, v.Notification = true, true
	return v
}

// readParams decodes params. A field that is not known is an error: a misspelt option would have no effect.
func readParams[P any](raw json.RawMessage) (P, error) {
	var p P
	if raw == nil {
		raw = json.RawMessage("{}")
	}
	if !strings.HasPrefix(string(raw), "{") {
		return p, errors.New(errParamsNotObject)
	}
	if err := strictly(raw, &p); err != nil {
		return p, fmt.Errorf("params: %w", err)
	}
	if name := missing(reflect.ValueOf(p)); name != "" {
		return p, fmt.Errorf("params: "+errMissing, name)
	}
	return p, nil
}

// strictly decodes one JSON value whose fields are all known.
func strictly(raw json.RawMessage, to any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

// missing returns a required field that has no value: a text, or any JSON, that may not be left out.
func missing(v reflect.Value) string {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		text := f.Type.Kind() == reflect.String || f.Type == reflect.TypeFor[json.RawMessage]() ||
			f.Type.Kind() == reflect.Slice
		if !strings.Contains(options, "omit") && text && v.Field(i).Len() == 0 {
			return name
		}
	}
	return ""
}

// calls are the methods that the sidecar calls.
func calls() []Verb {
	request := func(name, doc string, params, result reflect.Type) Verb {
		return Verb{Name: name, Doc: doc, Sidecar: true, Params: params, Result: result}
	}
	notification := func(name, doc string, params reflect.Type) Verb {
		return Verb{Name: name, Doc: doc, Sidecar: true, Notification: true, Params: params}
	}
	return []Verb{
		request(methodTurn, "Run a turn. A result completes it; an error fails it, and its kind decides whether it is "+
			"tried again. The turn may have been ended before.", reflect.TypeFor[Turn](), reflect.TypeFor[any]()),
		request(methodCompact, "Compact the conversation of a session. An error fails the compaction.",
			reflect.TypeFor[Compact](), reflect.TypeFor[Compacted]()),
		request(methodOptions, "Return what makes the turn the same request when it is tried again: a model, a "+
			"temperature. It may be asked several times for a turn.", reflect.TypeFor[Turn](), reflect.TypeFor[any]()),
		notification(methodTurnEnds, "Stop running a turn, and reply to its request. It may come after the reply.",
			reflect.TypeFor[Cancelled]()),
		notification(methodCompactEnds, "Stop a compaction, and reply to its request. It may come after the reply.",
			reflect.TypeFor[Cancelled]()),
		notification(methodLost, "This process may do nothing more as its harness: stop.", reflect.TypeFor[Lost]()),
		notification(methodShutdown, "The sidecar was asked to end. Turns are cancelled, and have 10 s to end.",
			reflect.TypeFor[Nothing]()),
	}
}
