package compaction

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// logReadsMax is how many requests look for their message in the log of a session at the same time. Others wait.
const logReadsMax = 4

// sentLongAgo returns the place in the log of a message that was sent before, and whose ending was displaced in the
// document by later ones; 0 for a message that the session never had, or that the document lists.
func (s *Service) sentLongAgo(ctx context.Context, st *session.State, w request.Send) (uint64, error) {
	then, err := s.listedLongAgo(ctx, st, w.Ref, w.Message)
	if err != nil || then == nil {
		return 0, err
	}
	return sentBefore(then, w, s.loop.Source(ctx))
}

// withdrawnLongAgo is [withdrawnBefore] for a message whose ending was displaced in the document by later ones. It
// returns 0 for a message that the session never had, or that the document lists.
func (s *Service) withdrawnLongAgo(ctx context.Context, st *session.State, w request.Withdraw) (uint64, error) {
	then, err := s.listedLongAgo(ctx, st, w.Ref, w.Message)
	if err != nil || then == nil {
		return 0, err
	}
	return withdrawnBefore(then, w)
}

// listedLongAgo returns the session as it was when it listed a message that the document does not list any more; nil if
// the document lists it, or if the session never had it. An id that the session never had costs a read of what is new
// since the last such request.
func (s *Service) listedLongAgo(ctx context.Context, st *session.State, r events.Ref, message string) (*session.State,
	error) {
	if st.Changeable() != nil || !mayForget(st) || lists(st, message) {
		return nil, nil
	}
	select {
	case s.reading <- struct{}{}:
		defer func() { <-s.reading }()
	case <-ctx.Done():
		return nil, events.Unavailable("others look for messages of long ago: send it again")
	}
	never, err := s.had.Never(ctx, r, message)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", r, err)
	}
	if never {
		return nil, nil
	}
	return s.whenListed(ctx, r, message)
}

// whenListed returns the session as it was just after a message ended, or was taken in if it has not ended; nil if no
// message with that id counted.
func (s *Service) whenListed(ctx context.Context, r events.Ref, message string) (then *session.State, err error) {
	st := session.New(r)
	err = s.bus.Log.Each(ctx, r, 0, func(c events.Commit) error {
		st.Fold(&c)
		if _, ended := st.Ended(session.EntityMessage, message); ended {
			then = st.Clone()
			return errFound
		}
		if then == nil && lists(st, message) {
			then = st.Clone()
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFound) {
		return nil, fmt.Errorf("read %s: %w", r, err)
	}
	return then, nil
}

// errFound ends a read of a log.
var errFound = errors.New("found")

// mayForget reports whether the document may lack the ending of a message. An answer that is taken back removes an
// ending from a full list, so one that lacks a single ending may have been full.
func mayForget(s *session.State) bool { return len(s.Recent) >= session.RecentMax-1 }

// lists reports whether the document knows a message.
func lists(s *session.State, message string) bool {
	_, ended := s.Ended(session.EntityMessage, message)
	return ended || s.MessageSeq(message) != 0
}

// messageOf returns the message that a fact takes in, "" for another fact.
func messageOf(f events.Fact) string {
	if f, ok := f.(events.MessageAccepted); ok {
		return f.Message
	}
	return ""
}
