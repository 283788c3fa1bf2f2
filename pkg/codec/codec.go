// Package codec encodes and decodes JSON of a known shape. One list of fields describes both directions, and no types
// are inspected at run time: it is several times as fast as encoding/json.
//
//	func point(c *codec.Codec, p *Point) {
//		codec.Number(c, `{"x":`, &p.X)
//		codec.Number(c, `,"y":`, &p.Y)
//		codec.Some(c, `,"name":`, &p.Name)
//		c.Mark(`}`)
//	}
//
// Guarantees:
//
//  1. A writer writes the bytes that encoding/json writes without HTML escaping, if the list names each field in the
//     order of its struct. A package with a list tests this.
//  2. A reader accepts only what a writer writes: the fields in their order, without white space, no field twice. It
//     decodes that as encoding/json does. At anything else it stops, and [Codec.Ended] returns false: the caller then
//     decodes with encoding/json. The result is the same in both cases.
//
// The package has no side effects.
package codec

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// rawDepthMax is the maximum number of open brackets in a value that encoding/json reads. The limit of encoding/json is
// far higher.
const rawDepthMax = 1000

// Codec encodes or decodes one document. Use [Writer] or [Reader] to make one.
type Codec struct {
	b       []byte // the input of a reader, or the buffer of a writer
	at      int    // offset of the next byte
	reading bool
	odd     bool  // the input is not in a writer's form: the reader has stopped
	err     error // of the first value that cannot be encoded

	words [wordsKept]string // recent strings, see [Codec.word]
}

// Writer returns a codec that appends to space and grows it when it is full.
func Writer(space []byte) *Codec { return &Codec{b: space[:cap(space)], at: len(space)} }

// Reader returns a codec that decodes doc. It keeps no reference to doc in what it decodes.
func Reader(doc []byte) *Codec { return &Codec{b: doc, reading: true} }

// Read makes the codec decode doc. It keeps the cache of recent strings, and no reference to doc in what it decodes.
func (c *Codec) Read(doc []byte) { c.b, c.at, c.reading, c.odd, c.err = doc, 0, true, false, nil }

// Written returns the encoded document, or the error of encoding/json for the first value that cannot be encoded.
func (c *Codec) Written() ([]byte, error) { return c.b[:c.at], c.err }

// wrote sets the offset behind b, which extends c.b[:c.at]. It stores the buffer only when append has moved it: storing
// a pointer for each field costs more than the field while the garbage collector runs.
func (c *Codec) wrote(b []byte) {
	c.at = len(b)
	if cap(b) != len(c.b) {
		c.b = b[:cap(b)]
	}
}

// Ended reports whether the whole input was decoded and is in a writer's form.
func (c *Codec) Ended() bool { return !c.odd && c.at == len(c.b) }

// Going reports whether the input decoded so far is in a writer's form.
func (c *Codec) Going() bool { return !c.odd }

// Mark writes or expects constant text.
func (c *Codec) Mark(text string) {
	if !c.reading {
		c.wrote(append(c.b[:c.at], text...))
	} else if !c.take(text) {
		c.odd = true
	}
}

// maybe writes or reads optional text. A writer writes it if there is true; a reader reads it if it is next. maybe
// reports whether the text was written or read.
func (c *Codec) maybe(text string, there bool) bool {
	if c.reading {
		return c.take(text)
	}
	if there {
		c.wrote(append(c.b[:c.at], text...))
	}
	return there
}

// take skips text if it is next in the input, and reports whether it was.
func (c *Codec) take(text string) bool {
	if c.odd || len(c.b)-c.at < len(text) || string(c.b[c.at:c.at+len(text)]) != text {
		return false
	}
	c.at += len(text)
	return true
}

// Flag is a bool field without omitempty.
func Flag(c *Codec, name string, p *bool) {
	if !c.reading {
		c.wrote(strconv.AppendBool(append(c.b[:c.at], name...), *p))
		return
	}
	c.Mark(name)
	*p = c.take("true")
	if !*p && !c.take("false") {
		c.odd = true
	}
}

// SomeFlag is a bool field with omitempty.
func SomeFlag(c *Codec, name string, p *bool) {
	if c.maybe(name, *p) {
		c.Mark("true")
		*p = true
	}
}

// Fields writes or reads the fields of a type, in their order.
type Fields[T any] func(*Codec, *T)

// Optional writes or reads the name of an optional field, including its opening bracket. It reports whether the field
// was written or is next: then the caller writes or reads the fields of its value, and the bracket that closes it.
func Optional(c *Codec, name string, there bool) bool { return c.maybe(name, there) }

// Object is a pointer field with omitempty.
func Object[T any](c *Codec, name string, p **T, fields Fields[T]) {
	if !c.maybe(name, *p != nil) {
		return
	}
	if c.reading {
		*p = new(T)
	}
	fields(c, *p)
}

// Nullable is a pointer field without omitempty.
func Nullable[T any](c *Codec, name string, p **T, fields Fields[T]) {
	c.Mark(name)
	if c.maybe("null", *p == nil) {
		return
	}
	if c.reading {
		*p = new(T)
	}
	fields(c, *p)
}

// List is a slice field with omitempty. Each element begins with first; a reader counts first to allocate the slice.
func List[T any](c *Codec, name, first string, p *[]T, fields Fields[T]) {
	if !c.maybe(name, len(*p) > 0) {
		return
	}
	c.Mark(`[`)
	if !c.reading {
		for i := range *p {
			c.Mark(","[:min(i, 1)])
			fields(c, &(*p)[i])
		}
		c.Mark(`]`)
		return
	}
	all := make([]T, 0, bytes.Count(c.b[c.at:], []byte(first)))
	for next := true; next && !c.odd; next = c.take(`,`) {
		all = append(all, *new(T))
		fields(c, &all[len(all)-1])
	}
	c.Mark(`]`)
	*p = all
}

// tableRoom is how many entries a reader allocates for a table at first. Then it doubles the number.
const tableRoom = 4

// Table is a map field with omitempty. A nil entry is not supported.
func Table[T any](c *Codec, name string, p *map[string]*T, fields Fields[T]) {
	if !c.maybe(name, len(*p) > 0) {
		return
	}
	c.Mark(`{`)
	if !c.reading {
		for i, key := range slices.Sorted(maps.Keys(*p)) {
			c.wrote(append(appendText(append(c.b[:c.at], ","[:min(i, 1)]...), key), ':'))
			fields(c, (*p)[key])
		}
		c.Mark(`}`)
		return
	}
	all, room := map[string]*T{}, make([]T, tableRoom)
	for next := true; next && !c.odd; next = c.take(`,`) {
		if len(room) == 0 {
			room = make([]T, len(all))
		}
		key, x := c.text(), &room[0]
		c.Mark(`:`)
		fields(c, x)
		all[key], room = x, room[1:]
	}
	c.Mark(`}`)
	*p = all
}

// Struct is an optional field: there is whether a writer writes it. The name includes the opening bracket.
func Struct[T any](c *Codec, name string, there bool, p *T, fields Fields[T]) {
	if c.maybe(name, there) {
		fields(c, p)
	}
}

// Opaque is a raw JSON field with omitempty.
func Opaque(c *Codec, name string, p *json.RawMessage) {
	if !c.maybe(name, len(*p) > 0) {
		return
	}
	if !c.reading {
		if c.err == nil {
			buf := bytes.NewBuffer(c.b[:c.at])
			if c.err = json.Compact(buf, *p); c.err == nil {
				c.wrote(buf.Bytes())
			}
		}
		return
	}
	raw := c.raw()
	if c.odd || !json.Valid(raw) {
		c.odd = true
		return
	}
	// as encoding/json does
	*p = bytes.Clone(bytes.TrimSpace(raw))
}

// Rest is an optional field that encoding/json writes and reads. Use it for rare or opaque values.
func Rest[T any](c *Codec, name string, there bool, p *T) {
	if !c.maybe(name, there) {
		return
	}
	if !c.reading {
		c.value(*p)
		return
	}
	raw := c.raw()
	if c.odd || json.Unmarshal(raw, p) != nil {
		c.odd = true
	}
}

// value writes v as encoding/json does.
func (c *Codec) value(v any) {
	if c.err != nil {
		return
	}
	buf := bytes.NewBuffer(c.b[:c.at])
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if c.err = enc.Encode(v); c.err == nil {
		// Encode appends a line feed
		c.wrote(buf.Bytes()[:buf.Len()-1])
	}
}

// raw skips one value and returns its bytes. The caller checks that they are JSON: raw is certain only that no JSON
// value ends elsewhere.
func (c *Codec) raw() []byte {
	start, depth := c.at, 0
	for ; !c.odd && c.at < len(c.b); c.at++ {
		switch c.b[c.at] {
		case '{', '[':
			if depth++; depth > rawDepthMax {
				c.odd = true
			}
		case '}', ']':
			if depth--; depth < 0 {
				return c.b[start:c.at]
			}
		case ',':
			if depth == 0 {
				return c.b[start:c.at]
			}
		case '"':
			c.skipString()
			// the loop increments it
			c.at--
		}
	}
	c.odd = true
	return nil
}
