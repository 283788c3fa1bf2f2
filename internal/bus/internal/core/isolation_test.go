package core

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// A client moves to another node after seconds without any answer, later each time, and not while something is
// answered.
func TestIsolation(t *testing.T) {
	silent, refused := fmt.Errorf("%w: silent", ErrUnreachable), fmt.Errorf("%w: refused", ErrLostRace)
	for _, c := range []struct {
		name  string
		steps []struct {
			at  time.Duration
			err error
		}
		moves []time.Duration
	}{
		{"answers only", steps(0, nil, 10, nil, 20, refused), nil},
		{"one request without an answer", steps(0, nil, 5, silent, 6, nil, 60, silent), nil},
		{"silence", steps(0, silent, 2, silent, 3, silent), seconds(3)},
		{"an answer between", steps(0, silent, 2, refused, 4, silent, 6, silent), nil},
		{"silence that stays", steps(0, silent, 3, silent, 4, silent, 7, silent, 10, silent, 11, silent, 22, silent, 23,
			silent), seconds(3, 10, 23)},
		{"silence after an answer", steps(0, silent, 3, silent, 4, nil, 5, silent, 8, silent), seconds(3, 8)},
	} {
		t.Run(c.name, func(t *testing.T) {
			var i isolation
			var moves []time.Duration
			start := time.Now()
			for _, s := range c.steps {
				if i.move(start.Add(s.at), s.err) {
					moves = append(moves, s.at)
				}
			}
			if fmt.Sprint(moves) != fmt.Sprint(c.moves) {
				t.Errorf("moved at %v, want %v", moves, c.moves)
			}
		})
	}
	if errors.Is(refused, ErrUnreachable) {
		t.Error("a refusal is no silence")
	}
}

func seconds(all ...int) (list []time.Duration) {
	for _, s := range all {
		list = append(list, time.Duration(s)*time.Second)
	}
	return list
}

// steps are pairs of seconds and results.
func steps(all ...any) (list []struct {
	at  time.Duration
	err error
}) {
	for i := 0; i < len(all); i += 2 {
		n, _ := all[i].(int)
		err, _ := all[i+1].(error)
		list = append(list, struct {
			at  time.Duration
			err error
		}{time.Duration(n) * time.Second, err})
	}
	return list
}
