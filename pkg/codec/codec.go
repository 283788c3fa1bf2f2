// Package codec writes and reads JSON of a known shape by one list of its fields, for both ways, several times as fast as
// encoding/json does by looking at types.
//
//	func point(c *codec.Codec, p *Point) {
//		codec.Number(c, `{"x":`, &p.X)
//		codec.Number(c, `,"y":`, &p.Y)
//		codec.Some(c, `,"name":`, &p.Name)
//		c.Mark(`}`)
//	}
//
// Promises:
//
//  1. What is written is what encoding/json writes, without the escapes that only HTML needs, if the list names each field
//     in the order of its struct. The test of whoever has a list sees to that.
//  2. What is read is what encoding/json reads. A reader takes only what a writer wrote: the fields in their order, no
//     white space, no field twice. At anything else it stops, and [Codec.Ended] is false: then the thorough way decides.
//     So it never gives another answer than that one, only sooner.
//
// Everything here is pure.
package codec

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// rawDepthMax is how many brackets may be open in what encoding/json sees to; it has a limit of its own, far beyond.
const rawDepthMax = 1000

// Codec is one writing or one reading. [Writer] and [Reader] make it.
type Codec struct {
	b       []byte // all that is to be read, or the space to write in
	at      int    // where reading or writing is
	reading bool
	odd     bool  // reading has come upon something out of the ordinary, and is of no more use
	err     error // of the first value that has no JSON

	words [wordsKept]string // read last, by [Codec.word]
}

// Writer writes behind this, for as long as its space lasts.
func Writer(space []byte) *Codec { return &Codec{b: space[:cap(space)], at: len(space)} }

// Reader reads this. It keeps nothing of it.
func Reader(doc []byte) *Codec { return &Codec{b: doc, reading: true} }

// Read begins reading this, with what is remembered of what was read before. It keeps nothing of it.
func (c *Codec) Read(doc []byte) { c.b, c.at, c.reading, c.odd, c.err = doc, 0, true, false, nil }

// Written is all that was written; an error of encoding/json when a value has no JSON.
func (c *Codec) Written() ([]byte, error) { return c.b[:c.at], c.err }

// wrote takes what was appended to c.b[:c.at]. The space is set anew only when it has grown: a pointer that is stored once
// a field costs more than the field while garbage is collected.
func (c *Codec) wrote(b []byte) {
	c.at = len(b)
	if cap(b) != len(c.b) {
		c.b = b[:cap(b)]
	}
}

// Ended says whether all has been read, and everything was as a writer writes it.
func (c *Codec) Ended() bool { return !c.odd && c.at == len(c.b) }

// Going says whether everything that was read so far was as a writer writes it.
func (c *Codec) Going() bool { return !c.odd }

// Mark is text that is always there.
func (c *Codec) Mark(text string) {
	if !c.reading {
		c.wrote(append(c.b[:c.at], text...))
	} else if !c.take(text) {
		c.odd = true
	}
}

// maybe is text that is there or not: in writing as the caller says, in reading as it is found.
func (c *Codec) maybe(text string, there bool) bool {
	if c.reading {
		return c.take(text)
	}
	if there {
		c.wrote(append(c.b[:c.at], text...))
	}
	return there
}

// take takes this text, if it is the next.
func (c *Codec) take(text string) bool {
	if c.odd || len(c.b)-c.at < len(text) || string(c.b[c.at:c.at+len(text)]) != text {
		return false
	}
	c.at += len(text)
	return true
}

// Flag is a field that is always there.
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

// Fields is the list of a type's fields.
type Fields[T any] func(*Codec, *T)

// Object is a field with omitempty.
func Object[T any](c *Codec, name string, p **T, fields Fields[T]) {
	if !c.maybe(name, *p != nil) {
		return
	}
	if c.reading {
		*p = new(T)
	}
	fields(c, *p)
}

// Nullable is a field that is always there.
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

// List is a field with omitempty. Each of it begins with first, which is how a reader counts them.
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

// tableRoom is for how many entries of a table there is room at first; then it is doubled.
const tableRoom = 4

// Table is a field with omitempty. It has no null entries.
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

// Struct is a field that is there or not, of a type whose zero is left out. The name ends with the bracket that opens it.
func Struct[T any](c *Codec, name string, there bool, p *T, fields Fields[T]) {
	if c.maybe(name, there) {
		fields(c, p)
	}
}

// Opaque is a field with omitempty that is JSON of any shape.
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
	*p = bytes.Clone(bytes.TrimSpace(raw)) // as encoding/json does
}

// Rest is a field that encoding/json sees to, there or not: for what is rare, or opaque.
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

// value writes any value as encoding/json does.
func (c *Codec) value(v any) {
	if c.err != nil {
		return
	}
	buf := bytes.NewBuffer(c.b[:c.at])
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if c.err = enc.Encode(v); c.err == nil {
		c.wrote(buf.Bytes()[:buf.Len()-1]) // without the line feed that Encode ends with
	}
}

// raw takes one value whole. Whether it is JSON within is for those to say who read it: all that is certain is that no
// JSON value ends elsewhere.
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
			c.at-- // the loop goes on behind it
		}
	}
	c.odd = true
	return nil
}
