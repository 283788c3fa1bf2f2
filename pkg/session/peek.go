package session

import (
	"bytes"
	"strconv"
)

// PeekField is the JSON of one top-level field of a document, without reading the rest; nil where it is not found. Fields of
// the same name further inside, and text that only looks like one, are not taken for it.
func PeekField(doc []byte, name string) []byte {
	depth, start := 0, -1
	for i := 0; i < len(doc); i++ {
		switch doc[i] {
		case '"':
			end := stringEnd(doc, i)
			if depth == 1 && end < len(doc) && doc[end] == ':' && string(doc[i+1:end-1]) == name {
				start = end + 1
			}
			i = end - 1
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			switch {
			case start >= 0 && depth == 1: // the value's own bracket
				return doc[start : i+1]
			case start >= 0 && depth == 0: // that of the document
				return doc[start:i]
			}
		case ',':
			if start >= 0 && depth == 1 {
				return doc[start:i]
			}
		}
	}
	return nil
}

// stringEnd is behind the quote that closes a JSON string, the text's end if none does.
func stringEnd(doc []byte, quote int) int {
	for i := quote + 1; i < len(doc); i++ {
		switch doc[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(doc)
}

// PeekSeq is the seq of a document that [State.Encode] wrote, without reading the rest; 0 if that cannot be told.
func PeekSeq(doc []byte) uint64 {
	_, rest, ok := bytes.Cut(doc, []byte(`,"phase":"`)) // within a text of the fields before it the quotes would be escaped
	if !ok {
		return 0
	}
	rest, ok = bytes.CutPrefix(rest[max(bytes.IndexByte(rest, '"'), 0):], []byte(`","seq":`))
	end := bytes.IndexByte(rest, ',')
	if !ok || end < 0 {
		return 0
	}
	seq, err := strconv.ParseUint(string(rest[:end]), 10, 64)
	if err != nil {
		return 0
	}
	return seq
}
