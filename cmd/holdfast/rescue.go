package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/terminal"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/services/ledger"
)

// The files that a rescue writes.
const (
	rescueLog       = "log.jsonl"
	rescueDocuments = "documents.jsonl"
	rescueReport    = "report.json"
	rescueFileMode  = 0o600
	rescueDirMode   = 0o700
)

// rescuedMessage is one line of [rescueLog] or [rescueDocuments].
type rescuedMessage struct {
	Seq     uint64              `json:"seq"` // of a document: its revision
	At      time.Time           `json:"at"`
	Subject string              `json:"subject,omitempty"`
	Key     string              `json:"key,omitempty"`
	Header  map[string][]string `json:"header,omitempty"`
	JSON    json.RawMessage     `json:"json,omitempty"` // the body, if it is JSON
	Body    []byte              `json:"body,omitempty"` // else the body in base64
}

// rescueFound counts what a rescue has written, and what it could not read.
type rescueFound struct {
	Commits   int    `json:"commits"`
	FirstSeq  uint64 `json:"first_seq"`
	LastSeq   uint64 `json:"last_seq"`
	Documents int    `json:"documents"`
	// sessions whose document is ahead of the log; unknown for files
	Lost    []ledger.Lost  `json:"lost,omitempty"`
	Damages []embed.Damage `json:"damages,omitempty"` // of the files
}

// errRescueDir means that a rescue would overwrite files.
var errRescueDir = errors.New("rescue: choose a directory that is empty or not there yet")

func rescueCommand(a *app) *cobra.Command {
	var data string
	cmd := a.repairCommand("rescue DIR", "Write the log and all documents to files",
		"Write the readable part of the log and all documents to files in DIR, before anything is repaired. It "+
			"changes nothing in the cell.\n\n"+
			"With --from it reads the files of a `holdfast up` that does not run, without a broker: a broker cuts a "+
			"damaged file at the first "+
			"record that it cannot read, while this reads on behind it. Files that `holdfast up` kept before such a "+
			"cut are read, too.",
		arguments(1, 1, "the directory DIR"), "holdfast rescue ./rescued",
		"holdfast rescue ./rescued --from ./holdfast-data")
	cmd.Flags().StringVar(&data, "from", "",
		"the data `directory` of a `holdfast up` that does not run; by default the broker is asked")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("timeout") {
			// to read all; a broker that is not there is missed sooner
			a.patience = rebuildTimeout
		}
		found, err := a.rescue(cmd.Context(), args[0], data)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(found)
		}
		return a.print(found.text(args[0]))
	}
	return cmd
}

// text returns what was written to a directory, for a person.
func (f *rescueFound) text(dir string) string {
	text := fmt.Sprintf("%s and %s written to %s\n", terminal.Plural(f.Commits, "commit"),
		terminal.Plural(f.Documents, "document"), dir)
	for _, d := range f.Damages {
		text += fmt.Sprintf("not readable: %s\n", terminal.Clean(d.String()))
	}
	if len(f.Lost) > 0 {
		text += fmt.Sprintf("the log has lost commits of %s: see %s\n", terminal.Plural(len(f.Lost), "session"),
			rescueReport)
	}
	return text
}

// rescue writes everything that can be read: the log, the documents, then a summary.
func (a *app) rescue(ctx context.Context, dir, data string) (found rescueFound, err error) {
	if files, err := os.ReadDir(dir); err == nil && len(files) > 0 {
		return found, fmt.Errorf("%w: %s", errRescueDir, dir)
	}
	if data != "" {
		return a.rescueTo(dir, func(found *rescueFound, commit, document func(rescuedMessage) error) error {
			return a.rescueFiles(data, found, commit, document)
		})
	}
	// the broker first: without one DIR stays empty, for another attempt
	err = a.with(ctx, func(ctx context.Context, b *bus.Bus) (err error) {
		found, err = a.rescueTo(dir, func(found *rescueFound, commit, document func(rescuedMessage) error) error {
			return a.rescueCell(ctx, b, found, commit, document)
		})
		return err
	})
	if missing, ok := errors.AsType[*fault](err); ok && errors.Is(err, bus.ErrUnreachable) {
		missing.advice += rescueAdvice
	}
	return found, err
}

// rescueAdvice describes how to rescue without a broker.
const rescueAdvice = "\n  without a broker, read the files of a `holdfast up` that has ended: --from DIRECTORY"

// rescueTo writes the files of a rescue: what read finds, then a summary.
func (a *app) rescueTo(dir string,
	read func(found *rescueFound, commit, document func(rescuedMessage) error) error) (found rescueFound, err error) {
	if err := os.MkdirAll(dir, rescueDirMode); err != nil {
		return found, fmt.Errorf("rescue: %w", err)
	}
	log, err := newJSONFile(filepath.Join(dir, rescueLog))
	if err != nil {
		return found, err
	}
	docs, err := newJSONFile(filepath.Join(dir, rescueDocuments))
	if err != nil {
		return found, errors.Join(err, log.close())
	}
	commit := func(m rescuedMessage) error {
		if found.Commits++; found.FirstSeq == 0 {
			found.FirstSeq = m.Seq
		}
		found.LastSeq = m.Seq
		return log.write(m)
	}
	document := func(m rescuedMessage) error {
		found.Documents++
		return docs.write(m)
	}
	err = read(&found, commit, document)
	if err = errors.Join(err, log.close(), docs.close()); err != nil {
		return found, err
	}
	report, err := newJSONFile(filepath.Join(dir, rescueReport))
	if err != nil {
		return found, err
	}
	return found, errors.Join(report.write(found), report.close())
}

// rescueCell reads from the broker.
func (a *app) rescueCell(ctx context.Context, b *bus.Bus, found *rescueFound, commit,
	document func(rescuedMessage) error) error {
	ctx, cancel := context.WithTimeout(ctx, max(a.timeout, a.patience))
	defer cancel()
	err := a.progress("reading the log", func() error {
		return b.Log.ScanMessages(ctx, 0, func(m bus.Message) error {
			return commit(rescued(rescuedMessage{Seq: m.Seq, At: m.At, Subject: m.Subject, Header: m.Header}, m.Body))
		})
	})
	for _, filter := range []string{events.SessionKeys(""), events.LostKeys("")} {
		if err == nil {
			err = b.KV.List(ctx, kv.State, filter, func(e kv.Entry) error {
				return document(rescued(rescuedMessage{Seq: e.Rev, At: e.At, Key: e.Key}, e.Value))
			})
		}
	}
	if err != nil {
		return fmt.Errorf("rescue: %w", err)
	}
	seen, err := ledger.Inspect(ctx, b)
	if err != nil {
		return fmt.Errorf("rescue: %w", err)
	}
	for _, x := range seen.Lost {
		// it is among the documents
		x.Document = nil
		found.Lost = append(found.Lost, x)
	}
	return nil
}

// rescueFiles reads the files of a stopped broker.
func (a *app) rescueFiles(data string, found *rescueFound, commit, document func(rescuedMessage) error) error {
	cell, err := events.NewCell(a.prefix)
	if err != nil {
		return err
	}
	damages, err := embed.Salvage(data, cell.LogStream(), func(r embed.Record) error {
		return commit(rescued(rescuedMessage{Seq: r.Seq, At: r.At, Subject: r.Subject, Header: headers(r.Header)},
			r.Body))
	})
	found.Damages = damages
	if err != nil {
		return fmt.Errorf("rescue: %w", err)
	}
	keys, newest := "$KV."+cell.StateBucket()+".", newestEntries{}
	damages, err = embed.Salvage(data, "KV_"+cell.StateBucket(), func(r embed.Record) error {
		newest.add(strings.TrimPrefix(r.Subject, keys), r)
		return nil
	})
	found.Damages = append(found.Damages, damages...)
	for key, r := range newest {
		if err == nil {
			err = document(rescued(rescuedMessage{Seq: r.Seq, At: r.At, Key: key}, r.Body))
		}
	}
	if err != nil {
		return fmt.Errorf("rescue: %w", err)
	}
	return nil
}

// newestEntries are the newest documents of sessions and notes of losses in the files of a bucket, by key.
type newestEntries map[string]embed.Record

// add adds what the files have of a key, in the order of the revisions. A document that was deleted by retention or by
// a rebuild is not kept. A note of a loss that was deleted is kept if the files still have it: it may be the last copy.
func (n newestEntries) add(key string, r embed.Record) {
	switch deleted := len(r.Body) == 0; {
	case !strings.HasPrefix(key, "session.") && !strings.HasPrefix(key, "lost."):
	case deleted && strings.HasPrefix(key, "session."):
		delete(n, key)
	case !deleted:
		n[key] = r
	}
}

// rescued adds a body to a line.
func rescued(m rescuedMessage, body []byte) rescuedMessage {
	if json.Valid(body) {
		m.JSON = body
	} else {
		m.Body = body
	}
	return m
}

// headers reads a message's headers in the form of the broker's files: a line with the protocol, then one for each
// header.
func headers(raw []byte) map[string][]string {
	all := map[string][]string{}
	for i, line := range bytes.Split(raw, []byte("\r\n")) {
		if name, value, ok := strings.Cut(string(line), ":"); ok && i > 0 {
			all[name] = append(all[name], strings.TrimSpace(value))
		}
	}
	return all
}

// jsonFile is a file of JSON values, one a line. It is synced when it is closed.
type jsonFile struct {
	f   *os.File
	buf *bufio.Writer
	enc *json.Encoder
}

func newJSONFile(path string) (*jsonFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, rescueFileMode)
	if err != nil {
		return nil, fmt.Errorf("rescue: %w", err)
	}
	buf := bufio.NewWriter(f)
	return &jsonFile{f: f, buf: buf, enc: json.NewEncoder(buf)}, nil
}

func (j *jsonFile) write(v any) error {
	if err := j.enc.Encode(v); err != nil {
		return fmt.Errorf("rescue: %w", err)
	}
	return nil
}

func (j *jsonFile) close() error {
	if err := errors.Join(j.buf.Flush(), j.f.Sync(), j.f.Close()); err != nil {
		return fmt.Errorf("rescue: %w", err)
	}
	return nil
}
