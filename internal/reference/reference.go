// Package reference prints the reference pages of docs/reference from the code: what is printed cannot be out of date.
//
//	events.md              who may say what, and with which fields
//	asyncapi.json          everything on the wire, as AsyncAPI 3.0
//	schemas/<kind>.json    the data of each kind of fact, as JSON Schema 2020-12
//	permissions.md         who may do what in a secured cell, as nats-server reads it
//	sidecar.json           the methods of holdfast sidecar, as OpenRPC
//
// The field lists of the contract are data here (contract.go) and are held against the structs of pkg/events: a field
// that only one of the two has stops the printing, and so the build.
//
// Its test compares the committed pages with what is printed; go test ./internal/reference -update writes them again.
package reference

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Print is every page by its path below docs/reference. It reads the comments of pkg/events, and so works only in the
// folder of this package, which is where go test runs. It fails when contract and code disagree, naming the field.
func Print() (map[string][]byte, error) {
	pages := map[string][]byte{"events.md": eventsPage()}
	r, err := newReflector()
	if err != nil {
		return nil, err
	}
	for _, s := range events.Table() {
		schema, err := dataSchema(r, s)
		if err != nil {
			return nil, err
		}
		if pages["schemas/"+string(s.Kind)+".json"], err = page(schema); err != nil {
			return nil, err
		}
	}
	doc, err := asyncAPI()
	if err != nil {
		return nil, err
	}
	if pages["asyncapi.json"], err = page(doc); err != nil {
		return nil, err
	}
	if pages["permissions.md"], err = permissionsPage(); err != nil {
		return nil, err
	}
	pages["sidecar.json"], err = sidecarPage()
	return pages, err
}

func page(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return b.Bytes(), nil
}
