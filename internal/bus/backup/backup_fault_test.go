package backup_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus/backup"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// TestTheConnectionBreaksMeanwhile: a backup whose connection breaks while the log is read has each commit once.
func TestTheConnectionBreaksMeanwhile(t *testing.T) {
	// more than is read ahead
	const commits, bytesEach = 40, 400 << 10
	s := natstest.Start(t)
	natstest.Bus(t, s)
	nc, _ := bustest.Outsider(t, s)
	body := noise(t, bytesEach)
	for range commits {
		if _, err := nc.Request("hf.log.h.s.harness", body, bustest.Patience); err != nil {
			t.Fatal(err)
		}
	}
	p := bustest.NewProxy(t, s)
	file := &acting{act: p.Cut}
	info, err := bustest.BusAt(t, p.Addr).Backups.Write(bustest.Background(t), file)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Stream("HF_LOG"); got.Messages != commits || got.First != 1 || got.Last != commits {
		t.Errorf("%+v", got)
	}
	to, _ := restored(t, file.Bytes())
	if got, last := content(t, to, "HF_LOG"); len(got) != commits || last != commits {
		t.Errorf("%d commits up to %d, want %d", len(got), last, commits)
	}
}

// TestRemovedFasterThanRead: a stream from which messages are removed during each pass is no backup, and is not read
// without an end.
func TestRemovedFasterThanRead(t *testing.T) {
	var infos atomic.Int64
	s := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
		switch {
		case a.Is("STREAM.INFO"):
			return bustest.OneReply(fmt.Sprintf(`{"state":{"last_seq":1000,"messages":%d}}`, 1000-infos.Add(1)))
		case a.Is("CONSUMER.CREATE"):
			return bustest.OneReply(`{"num_pending":0}`)
		case a.Is("STREAM.MSG.GET"):
			return bustest.NotFound
		}
		return bustest.OneReply(`{"success":true}`)
	})
	var file bytes.Buffer
	_, err := s.Open().Backups.Write(bustest.Background(t), &file)
	if !errors.Is(err, backup.ErrMoving) {
		t.Errorf("%v, want ErrMoving", err)
	}
	if n := infos.Load(); n > 20 {
		t.Errorf("%d passes", n)
	}
	if _, err := backup.Check(bytes.NewReader(file.Bytes())); !errors.Is(err, backup.ErrDamaged) {
		t.Errorf("its file: %v, want ErrDamaged", err)
	}
}

// TestAStreamThatCannotBeRead: a broker that refuses a stream, its consumer or its end ends the backup with its error.
// The file that was written is no backup.
func TestAStreamThatCannotBeRead(t *testing.T) {
	refused := bustest.OneReply(`{"error":{"code":400,"err_code":10025,"description":"bad request"}}`)
	for what, answer := range map[string]func(infos int64, a bustest.Asked) []bustest.Reply{
		"no log": func(int64, bustest.Asked) []bustest.Reply { return bustest.NoStream },
		"no log any more": func(infos int64, a bustest.Asked) []bustest.Reply {
			if a.Is("STREAM.INFO") && infos == 1 {
				return bustest.OneReply(`{"state":{"last_seq":1,"messages":1}}`)
			}
			return bustest.NoStream
		},
		"no consumer": func(_ int64, a bustest.Asked) []bustest.Reply {
			if a.Is("STREAM.INFO") {
				return bustest.OneReply(`{"state":{"last_seq":1,"messages":1}}`)
			}
			return refused
		},
		"no leases, which are read last": func(_ int64, a bustest.Asked) []bustest.Reply {
			if a.Is("STREAM.INFO") && !a.Is("STREAM.INFO.KV_hf_leases") {
				return bustest.OneReply(`{"state":{"last_seq":0,"messages":0}}`)
			}
			return bustest.NoStream
		},
		"no end": func(infos int64, a bustest.Asked) []bustest.Reply {
			switch {
			case a.Is("STREAM.INFO") && infos == 3:
				return bustest.NoStream
			case a.Is("STREAM.INFO"):
				return bustest.OneReply(`{"state":{"last_seq":1,"messages":0}}`)
			case a.Is("CONSUMER.CREATE"):
				return bustest.OneReply(`{"num_pending":0}`)
			}
			return bustest.NotFound
		},
	} {
		t.Run(what, func(t *testing.T) {
			var infos atomic.Int64
			s := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
				if a.Is("STREAM.INFO") {
					infos.Add(1)
				}
				return answer(infos.Load(), a)
			})
			var file bytes.Buffer
			if _, err := s.Open().Backups.Write(bustest.Within(t, bustest.Patience), &file); err == nil {
				t.Error("it is a backup")
			}
			if _, err := backup.Check(bytes.NewReader(file.Bytes())); !errors.Is(err, backup.ErrDamaged) {
				t.Errorf("its file: %v, want ErrDamaged", err)
			}
		})
	}
}

// breaking is a file during whose nth pass something happens.
type breaking struct {
	*bytes.Reader
	passes int
	act    func()
}

func (b *breaking) Seek(offset int64, whence int) (int64, error) {
	if b.passes--; b.passes == 0 {
		b.act()
	}
	return b.Reader.Seek(offset, whence)
}

// TestTheConnectionBreaksInARestore: a restore whose connection breaks fails, or has all that the file has. Services
// start on nothing less: the log is the last stream, so a cell without it has no commits, and can be restored again
// after its streams were removed.
func TestTheConnectionBreaksInARestore(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	bustest.MustAppend(t, b, bustest.Session, 0, "e1", "e2")
	file, info := taken(t, b)
	for pass := 1; pass <= len(info.Streams); pass++ {
		s := natstest.Start(t)
		p := bustest.NewProxy(t, s)
		to := bustest.BusAt(t, p.Addr)
		from := &breaking{Reader: bytes.NewReader(file), passes: pass, act: p.Cut}
		_, err := to.Backups.Restore(bustest.Within(t, bustest.Patience), from)
		_, js := bustest.Outsider(t, s)
		log, logErr := js.Stream(bustest.Background(t), "HF_LOG")
		switch {
		case err != nil && logErr == nil:
			t.Errorf("pass %d: %v, and there is a log", pass, err)
		case err == nil && (logErr != nil || log.CachedInfo().State.LastSeq != info.Stream("HF_LOG").Last):
			t.Errorf("pass %d: restored, and the log is %v", pass, logErr)
		}
	}
}
