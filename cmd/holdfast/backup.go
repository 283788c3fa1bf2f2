package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/backup"
	"github.com/holdfast-dev/holdfast/internal/terminal"
)

// Names of backups: PREFIX-TIME.backup, in which the times sort as text.
const (
	backupTime    = "20060102T150405Z"
	backupSuffix  = ".backup"
	partialSuffix = ".partial"
)

// backupTimeout is the time limit of a backup or a restore without --timeout.
const backupTimeout = time.Hour

func backupCommand(a *app) *cobra.Command {
	var keep int
	cmd := a.repairCommand("backup DIR", "Write the cell to a file in DIR",
		"Write the log, the objects, the alarms and the leases to a new file in DIR, while everything runs. Documents "+
			"and views follow from the log. The file has the name of the cell and the broker's time, and only its "+
			"owner may read it. A file without the ending .partial is whole.",
		arguments(1, 1, "the directory DIR"), "holdfast backup /backup --keep 14")
	cmd.Flags().IntVar(&keep, "keep", 0, "how many `files` of this cell to keep in DIR; older ones are removed; 0: all")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if keep < 0 {
			return usage(cmd, "--keep %d: want 0 or more", keep)
		}
		return a.copying(cmd, func(ctx context.Context, b *bus.Bus) error {
			path, info, err := a.backUp(ctx, b, args[0])
			if err == nil && keep > 0 {
				err = removeOlder(path, info.Prefix, keep)
			}
			if err != nil {
				return err
			}
			return a.printBackup(info, "written to "+path)
		})
	}
	return cmd
}

func restoreCommand(a *app) *cobra.Command {
	var checks bool
	cmd := a.repairCommand("restore FILE", "Make a cell from a file of `holdfast backup`",
		"Make the streams of a cell that does not exist from FILE. It reads the whole file first, and changes nothing "+
			"if the file is damaged or of another cell, or if a stream of the cell exists: it never removes or "+
			"overwrites one. Services must not run. They make documents and views from the log when they start.",
		arguments(1, 1, "the file FILE"), "holdfast restore /backup/hf-20260102T030405Z.backup",
		"holdfast restore /backup/hf-20260102T030405Z.backup --check")
	a.addFlags(cmd, []string{"replicas"})
	cmd.Flags().BoolVar(&checks, "check", false, "only read the file; it needs no broker")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		file, err := os.Open(args[0])
		if err != nil {
			return fmt.Errorf("restore: %w", err)
		}
		// it is only read
		defer func() { _ = file.Close() }()
		if checks {
			info, err := backup.Check(file)
			if err != nil {
				return fmt.Errorf("restore: %s: %w", args[0], err)
			}
			return a.printBackup(info, "in "+args[0])
		}
		return a.copying(cmd, func(ctx context.Context, b *bus.Bus) error {
			var info backup.Info
			err := a.progress("restoring", func() (err error) {
				info, err = b.Backups.Restore(ctx, file)
				return err
			})
			if err != nil {
				return fmt.Errorf("restore: %s: %w", args[0], err)
			}
			return a.printBackup(info, "restored; what was stored after it is not known")
		})
	}
	return cmd
}

// copying runs a backup or a restore within its time limit.
func (a *app) copying(cmd *cobra.Command, do func(context.Context, *bus.Bus) error) error {
	limit := backupTimeout
	if cmd.Flags().Changed("timeout") {
		limit = a.timeout
	}
	return a.with(cmd.Context(), func(ctx context.Context, b *bus.Bus) error {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return do(ctx, b)
	})
}

// printBackup prints what a backup has.
func (a *app) printBackup(info backup.Info, where string) error {
	if a.json {
		return a.printJSON(info)
	}
	log := info.Streams[0]
	return a.print(fmt.Sprintf("cell %s at %s: %s up to %d, %s\n", terminal.Clean(info.Prefix),
		info.At.UTC().Format(time.RFC3339), terminal.Plural(log.Messages, "commit"), log.Last, terminal.Clean(where)))
}

// backUp writes a backup into a directory, under its name only when it is whole and synced.
func (a *app) backUp(ctx context.Context, b *bus.Bus, dir string) (path string, info backup.Info, err error) {
	if at, err := os.Stat(dir); err != nil || !at.IsDir() {
		return "", info, fmt.Errorf("backup: %s is not a directory: make it first", dir)
	}
	at, err := b.Backups.Began(ctx)
	if err != nil {
		return "", info, fmt.Errorf("backup: %w", err)
	}
	path = filepath.Join(dir, b.Cell().Prefix()+"-"+at.Format(backupTime)+backupSuffix)
	if _, err := os.Lstat(path); err == nil {
		return "", info, fmt.Errorf("backup: %s: %w", path, fs.ErrExist)
	}
	file, err := os.OpenFile(path+partialSuffix, os.O_CREATE|os.O_EXCL|os.O_WRONLY, rescueFileMode)
	if err != nil {
		return "", info, fmt.Errorf("backup: %w", err)
	}
	err = a.progress("writing "+path, func() (err error) {
		info, err = b.Backups.Write(ctx, file)
		return err
	})
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return "", info, errors.Join(fmt.Errorf("backup: %w", err), os.Remove(file.Name()))
	}
	return path, info, syncDir(dir)
}

// syncDir makes the name of a new file durable. Not every system can do so for a directory.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	_ = d.Sync()
	return d.Close()
}

// removeOlder removes the oldest backups of a cell beside the one that was just written, and the beginnings of backups
// that did not end. It never removes the one just written, whatever the clock says.
func removeOlder(written, prefix string, keep int) error {
	dir := filepath.Dir(written)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	var whole, remove []string
	// in the order of their names
	for _, e := range entries {
		at, ours := strings.CutPrefix(e.Name(), prefix+"-")
		_, partial := time.Parse(backupTime+backupSuffix+partialSuffix, at)
		_, complete := time.Parse(backupTime+backupSuffix, at)
		switch {
		case !ours || !e.Type().IsRegular() || e.Name() == filepath.Base(written):
		case partial == nil:
			remove = append(remove, e.Name())
		case complete == nil:
			whole = append(whole, e.Name())
		}
	}
	remove = slices.Concat(remove, whole[:max(0, len(whole)-(keep-1))])
	for _, name := range remove {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("backup: %w", err)
		}
	}
	return nil
}
