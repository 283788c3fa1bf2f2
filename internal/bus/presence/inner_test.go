package presence

import (
	"fmt"
	"slices"
	"testing"
)

// reply is the answer of a broker with its newest connections, of which the last one has the number newest.
func reply(limit, newest int) answer {
	a := answer{Name: "name", ID: "id", Limit: limit}
	for n := newest; n > max(0, newest-limit); n-- {
		a.Conns = append(a.Conns, conn{CID: uint64(n), Reason: "Read Error"})
	}
	return a
}

// TestAnswersOfOneBroker: it is asked for more until the answer has what was known, one question at a time.
func TestAnswersOfOneBroker(t *testing.T) {
	type step struct {
		intervals     int // that begin before the answer
		limit, newest int
		next          int // limit of the further question
	}
	for name, steps := range map[string][]step{
		"few at the start": {{0, 16, 15, 0}, {1, 16, 30, 0}, {1, 16, 45, 0}},
		"just as many":     {{0, 16, 16, 64}, {0, 64, 16, 0}, {1, 16, 16, 0}},
		"fifteen new ones": {{0, 16, 3, 0}, {1, 16, 18, 0}, {1, 16, 33, 0}},
		"sixteen new ones": {{0, 16, 3, 0}, {1, 16, 19, 64}, {0, 64, 19, 0}, {1, 16, 34, 0}},
		"many at the start": {{0, 16, 5000, 64}, {0, 64, 5000, 256}, {0, 256, 5000, 1024},
			{0, 1024, 5000, 0}},
		"known in the second one": {{0, 16, 3, 0}, {1, 16, 103, 64}, {0, 64, 103, 256}, {0, 256, 103, 0}},
		"known in the first":      {{0, 16, 10, 0}, {1, 16, 66, 64}, {0, 64, 66, 0}, {1, 16, 66, 0}},
		"more end meanwhile":      {{0, 16, 3, 0}, {1, 16, 40, 64}, {0, 64, 300, 256}, {0, 256, 301, 1024}},
		"the next interval is first": {{0, 16, 3, 0}, {1, 16, 60, 64}, {1, 16, 90, 0}, {0, 64, 60, 0},
			{1, 16, 91, 64}},
		"a question is lost":           {{0, 16, 3, 0}, {1, 16, 60, 64}, {10, 16, 61, 0}, {1, 16, 61, 64}},
		"silent for long":              {{0, 16, 5, 0}, {200, 16, 20, 0}, {200, 16, 35, 0}},
		"silent for too long":          {{0, 16, 20, 64}, {0, 64, 20, 0}, {201, 16, 20, 64}},
		"nothing ended":                {{0, 16, 0, 0}, {1, 16, 0, 0}},
		"an answer without a question": {{0, 0, 0, 0}, {1, 0, 7, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAnswered()
			for i, s := range steps {
				for range s.intervals {
					a.tick()
				}
				of := reply(s.limit, s.newest)
				names, next := a.ended(of)
				if len(names) != len(of.Conns) {
					t.Errorf("answer %d: %d of %d are named", i, len(names), len(of.Conns))
				}
				want := question{State: 1, Sort: "stop", Limit: s.next, Name: "name", Exact: true}
				if next.Limit != s.next || s.next > 0 && next != want {
					t.Errorf("answer %d: asks for %+v, want %+v", i, next, want)
				}
			}
		})
	}
}

// TestALateConnection: a connection that the broker remembers behind newer ones is asked for.
func TestALateConnection(t *testing.T) {
	for total, limit := range map[int]int{20: 0, 25: 0, 26: 64} {
		a := newAnswered()
		for _, of := range []answer{reply(16, 20), reply(64, 20), reply(16, 25)} {
			if of.Total = 20; of.Conns[0].CID == 25 {
				of.Total = total
			}
			_, next := a.ended(of)
			if of.Total == total && of.Conns[0].CID == 25 && next.Limit != limit {
				t.Errorf("five new of %d: asks for %d, want %d", total-20, next.Limit, limit)
			}
		}
	}
}

// TestManyBrokers: any number of brokers is known, and a slow one takes nothing from the others.
func TestManyBrokers(t *testing.T) {
	a := newAnswered()
	for interval := range 3 {
		a.tick()
		for n := range 1_000 {
			of := reply(16, 15*(interval+1))
			of.ID = fmt.Sprint(n)
			if _, next := a.ended(of); next.Limit > 0 {
				t.Fatalf("interval %d: broker %d is asked for %+v", interval, n, next)
			}
		}
	}
	for range keepMax + 1 {
		a.tick()
	}
	if len(a.brokers) > 0 {
		t.Errorf("%d brokers are known that do not answer any more", len(a.brokers))
	}
}

// TestWhatCounts: a connection that the broker ended is not among those that ended, and a message that is no answer
// has none.
func TestWhatCounts(t *testing.T) {
	body := `{"server":{"name":"n"},"data":{"server_id":"id","limit":16,"account":"A","connections":[
		{"cid":1,"reason":"Client Closed"},{"cid":2,"reason":"Read Error"},{"cid":3,"reason":"Write Error"},
		{"cid":4,"reason":"Server Shutdown"},{"cid":5,"reason":"Stale Connection"},{"cid":6}]}}`
	of := read([]byte(body))
	names, next := newAnswered().ended(of)
	want := []Connection{{"id", 1}, {"id", 2}, {"id", 3}}
	if !slices.Equal(names, want) || next != (question{}) || of.Account != "A" || of.Name != "n" {
		t.Errorf("%v, asks for %+v", names, next)
	}
	for _, body := range []string{"", "{}", "null", "[]", `{"data":{"server_id":7}}`, `{"data":null}`,
		`{"data":{"connections":[{"cid":1,"reason":"Read Error"}],"limit":1}}`, `{"error":{"code":400}}`,
		`{"data":{"server_id":"id","connections":[{"cid":1,"reason":"Read Error"}],"limit":"1"}}`} {
		a := newAnswered()
		names, next := a.ended(read([]byte(body)))
		if len(names) > 0 || next != (question{}) || len(a.brokers) > 0 {
			t.Errorf("%s: %v, asks for %+v, %d brokers", body, names, next, len(a.brokers))
		}
	}
}
