package codec

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// Limits of the cache of strings that a reader keeps: most strings repeat soon.
const (
	wordsKept    = 64
	wordBytesMax = 40
)

// digitsMax is the number of decimal digits that always fit 63 bits.
const digitsMax = 18

// Text is a string field without omitempty.
func Text[T ~string](c *Codec, name string, p *T) {
	if !c.reading {
		c.wrote(appendText(append(c.b[:c.at], name...), string(*p)))
		return
	}
	c.Mark(name)
	*p = T(c.text())
}

// Word is a string field without omitempty that is one of a few words, in most documents. A reader allocates nothing
// for one of them.
func Word[T ~string](c *Codec, name string, p *T, words []T) {
	if !c.reading {
		Text(c, name, p)
		return
	}
	c.Mark(name)
	for _, w := range words {
		if n := c.at + len(w) + 1; c.at < len(c.b) && n < len(c.b) && c.b[c.at] == '"' && c.b[n] == '"' &&
			string(c.b[c.at+1:n]) == string(w) {
			*p, c.at = w, n+1
			return
		}
	}
	*p = T(c.text())
}

// Some is a string field with omitempty.
func Some[T ~string](c *Codec, name string, p *T) {
	switch {
	case c.reading && c.take(name):
		*p = T(c.text())
	case !c.reading && *p != "":
		c.wrote(appendText(append(c.b[:c.at], name...), string(*p)))
	}
}

// appendText appends text as encoding/json encodes it without HTML escaping.
func appendText(b []byte, text string) []byte {
	for i := range len(text) {
		if !plain[text[i]] {
			w := Writer(b)
			w.value(text)
			// encoding a string cannot fail
			return w.b[:w.at]
		}
	}
	b = append(b, '"')
	b = append(b, text...)
	return append(b, '"')
}

// plain has the ASCII bytes that JSON strings contain unescaped.
var plain = func() (table [256]bool) {
	for b := ' '; b <= '~'; b++ {
		table[b] = b != '"' && b != '\\'
	}
	return table
}()

// text reads a string.
func (c *Codec) text() string {
	if !c.take(`"`) {
		c.odd = true
		return ""
	}
	start, ascii := c.at, true
	for ; c.at < len(c.b); c.at++ {
		switch b := c.b[c.at]; {
		case plain[b]:
		case b == '"':
			c.at++
			raw := c.b[start : c.at-1]
			if ascii || utf8.Valid(raw) {
				return c.word(raw)
			}
			return c.unquoted(start - 1)
		case b == '\\' || b < ' ':
			c.at = start - 1
			c.skipString()
			return c.unquoted(start - 1)
		case b > '~':
			ascii = false
		}
	}
	c.odd = true
	return ""
}

// unquoted decodes the JSON string from quote to the current offset.
func (c *Codec) unquoted(quote int) (text string) {
	if c.odd || json.Unmarshal(c.b[quote:c.at], &text) != nil {
		c.odd = true
	}
	return text
}

// skipString moves from the opening quote of a string past its closing quote.
func (c *Codec) skipString() {
	for c.at++; c.at < len(c.b); c.at++ {
		switch c.b[c.at] {
		case '"':
			c.at++
			return
		case '\\':
			c.at++
		}
	}
	c.odd = true
}

// word returns raw as a string, from the cache of recent strings if it is there.
func (c *Codec) word(raw []byte) string {
	n := len(raw)
	if n == 0 {
		return ""
	}
	if n > wordBytesMax {
		return string(raw)
	}
	kept := &c.words[(n+3*int(raw[0])+7*int(raw[n-1])+11*int(raw[n/2]))%wordsKept]
	if *kept != string(raw) {
		*kept = string(raw)
	}
	return *kept
}

// Integer is the set of integer types that a number has.
type Integer interface{ ~int | ~int64 | ~uint64 }

// Number is an integer field without omitempty.
func Number[T Integer](c *Codec, name string, p *T) {
	if !c.reading {
		c.wrote(appendNumber(append(c.b[:c.at], name...), *p))
		return
	}
	c.Mark(name)
	*p = number[T](c)
}

// SomeNumber is an integer field with omitempty.
func SomeNumber[T Integer](c *Codec, name string, p *T) {
	switch {
	case c.reading && c.take(name):
		*p = number[T](c)
	case !c.reading && *p != 0:
		c.wrote(appendNumber(append(c.b[:c.at], name...), *p))
	}
}

func appendNumber[T Integer](b []byte, n T) []byte {
	if n < 0 {
		return strconv.AppendInt(b, int64(n), 10)
	}
	return strconv.AppendUint(b, uint64(n), 10)
}

// number reads an integer of at most [digitsMax] digits.
func number[T Integer](c *Codec) (n T) {
	minus := c.take(`-`)
	start := c.at
	for ; c.at < len(c.b) && isDigit(c.b[c.at]); c.at++ {
		n = 10*n + T(c.b[c.at]-'0')
	}
	digits := c.at - start
	switch {
	case digits < 1 || digits > digitsMax, digits > 1 && c.b[start] == '0', minus && (n == 0 || -n > 0):
		c.odd = true
	case minus:
		return -n
	}
	return n
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// Float is a float field without omitempty.
func Float(c *Codec, name string, p *float64) {
	// outside of these, encoding/json writes an exponent
	const plainMin, plainMax = 1e-6, 1e21
	c.Mark(name)
	switch abs := math.Abs(*p); {
	case c.reading:
		raw := c.raw()
		if n, err := strconv.ParseFloat(c.word(raw), 64); !c.odd && err == nil && isDecimal(raw) {
			*p = n
		} else if c.odd || json.Unmarshal(raw, p) != nil {
			c.odd = true
		}
	case abs == 0 || abs >= plainMin && abs < plainMax:
		c.wrote(strconv.AppendFloat(c.b[:c.at], *p, 'f', -1, 64))
	default:
		c.value(*p)
	}
}

// isDecimal reports whether raw is a JSON number without sign and exponent, for example 0.75.
func isDecimal(raw []byte) bool {
	whole, part, dot := bytes.Cut(raw, []byte("."))
	return digits(whole) && (len(whole) == 1 || whole[0] != '0') && (!dot || digits(part))
}

func digits(b []byte) bool {
	for _, d := range b {
		if !isDigit(d) {
			return false
		}
	}
	return len(b) > 0
}

// Time is a time field without omitzero.
func Time(c *Codec, name string, p *time.Time) {
	c.Mark(name)
	Instant(c, p)
}

// SomeTime is a time field with omitzero.
func SomeTime(c *Codec, name string, p *time.Time) {
	if c.maybe(name, !p.IsZero()) {
		Instant(c, p)
	}
}

// Lengths of the usual form of a time: in UTC, with or without a fraction.
const (
	instantForm     = "0000-00-00T00:00:00"
	instantBytesMin = len(instantForm) + 1
	instantBytesMax = instantBytesMin + 1 + fractionDigits
	fractionDigits  = 9
)

// Instant writes or reads a time as the only field of a value, for example in [Object].
func Instant(c *Codec, p *time.Time) {
	if c.reading {
		*p = c.instant()
		return
	}
	if p.Location() == time.UTC {
		if year, month, day := p.Date(); year >= 0 && year <= 9999 {
			c.wrote(appendInstant(c.b[:c.at], *p, year, int(month), day))
			return
		}
	}
	c.value(*p)
}

// appendInstant appends a time in UTC with a year of four digits.
func appendInstant(b []byte, t time.Time, year, month, day int) []byte {
	hour, minute, second := t.Clock()
	b = appendDigits(appendDigits(append(b, '"'), year/100), year%100)
	b = appendDigits(append(b, '-'), month)
	b = appendDigits(append(b, '-'), day)
	b = appendDigits(append(b, 'T'), hour)
	b = appendDigits(append(b, ':'), minute)
	b = appendDigits(append(b, ':'), second)
	if n := t.Nanosecond(); n > 0 {
		b = append(b, ".000000000"...)
		end := len(b)
		for i := end - 1; n > 0; i-- {
			b[i] += byte(n % 10)
			n /= 10
		}
		for b[end-1] == '0' {
			end--
		}
		b = b[:end]
	}
	return append(b, `Z"`...)
}

// appendDigits appends n as two digits.
func appendDigits(b []byte, n int) []byte { return append(b, byte('0'+n/10), byte('0'+n%10)) }

// instant reads a time.
func (c *Codec) instant() (t time.Time) {
	start := c.at
	if c.at >= len(c.b) || c.b[c.at] != '"' {
		c.odd = true
		return t
	}
	c.skipString()
	if c.odd {
		return t
	}
	if t, ok := plainInstant(c.b[start+1 : c.at-1]); ok {
		return t
	}
	if t.UnmarshalJSON(c.b[start:c.at]) != nil {
		c.odd = true
	}
	return t
}

// plainInstant reads a time in its usual form, on a day from 1 to 28. ok is false for any other form.
func plainInstant(s []byte) (t time.Time, ok bool) {
	const everyMonthsDays = 28
	if len(s) < instantBytesMin || len(s) > instantBytesMax || s[len(s)-1] != 'Z' {
		return t, false
	}
	for i := range len(instantForm) {
		if form := instantForm[i]; form == '0' && !isDigit(s[i]) || form != '0' && s[i] != form {
			return t, false
		}
	}
	nano, fraction := 0, s[len(instantForm):len(s)-1]
	if len(fraction) > 0 {
		if fraction[0] != '.' || len(fraction) == 1 {
			return t, false
		}
		for i := range fractionDigits {
			nano *= 10
			if i+1 >= len(fraction) {
				continue
			}
			if !isDigit(fraction[i+1]) {
				return t, false
			}
			nano += int(fraction[i+1] - '0')
		}
	}
	two := func(i int) int { return 10*int(s[i]-'0') + int(s[i+1]-'0') }
	year, month, day, hour, minute, second := 100*two(0)+two(2), two(5), two(8), two(11), two(14), two(17)
	if month < 1 || month > 12 || day < 1 || day > everyMonthsDays || hour > 23 || minute > 59 || second > 59 {
		return t, false
	}
	return time.Date(year, time.Month(month), day, hour, minute, second, nano, time.UTC), true
}
