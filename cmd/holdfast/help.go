package main

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/internal/terminal"
)

const (
	helpColumns = 80 // of a help text that is not printed on a terminal
	flagColumns = 28 // of flags with their values; the meaning of a longer one is below it
)

// printHelp prints the help of a command, as wide as its terminal. The lines of examples are whole: people copy them.
func (a *app) printHelp(cmd *cobra.Command, _ []string) {
	st := a.style(a.Stdout)
	if st.Width <= 0 {
		st.Width = helpColumns
	}
	about := cmd.Long
	if about == "" {
		about = cmd.Short
	}
	parts := []string{reflowed(about, st), "Usage:" + helpLines(useLines(cmd), st)}
	if cmd.HasExample() {
		parts = append(parts, "Examples:\n"+cmd.Example)
	}
	parts = append(parts, commandLists(cmd, st)...)
	if cmd.HasAvailableLocalFlags() {
		parts = append(parts, "Flags:"+flagLines(cmd.LocalFlags().FlagUsages(), st))
	}
	if cmd.HasAvailableSubCommands() {
		more := `Use "` + cmd.CommandPath() + ` [command] --help" for more information about a command.`
		parts = append(parts, st.Wrap(more, 0))
	}
	for i, part := range parts {
		parts[i] = strings.TrimRight(part, "\n")
	}
	_, _ = io.WriteString(a.Stdout, strings.Join(parts, "\n\n")+"\n")
}

// useLines returns how a command is called.
func useLines(cmd *cobra.Command) []string {
	var lines []string
	if cmd.Runnable() {
		lines = append(lines, cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		lines = append(lines, cmd.CommandPath()+" [command]")
	}
	return lines
}

// helpLines returns lines below a title, with an indent.
func helpLines(lines []string, st terminal.Style) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString("\n" + st.Wrap("  "+l, 4))
	}
	return b.String()
}

// commandLists returns the subcommands of a command, a list for each group, and those of no group last.
func commandLists(cmd *cobra.Command, st terminal.Style) []string {
	var lists []string
	for _, group := range append(slices.Clone(cmd.Groups()), &cobra.Group{Title: "Commands:"}) {
		lines := ""
		for _, sub := range cmd.Commands() {
			if sub.GroupID == group.ID && sub.IsAvailableCommand() {
				name := "  " + sub.Name() + strings.Repeat(" ", max(sub.NamePadding()-len(sub.Name()), 0)) + " "
				lines += "\n" + st.Wrap(name+sub.Short, len(name))
			}
		}
		if lines != "" {
			lists = append(lists, group.Title+lines)
		}
	}
	return lists
}

// flagLines returns flags and what they mean, side by side, from the lines of pflag, which have three spaces between.
func flagLines(usages string, st terminal.Style) string {
	var b strings.Builder
	for line := range strings.Lines(usages) {
		begin := len(line) - len(strings.TrimLeft(line, " "))
		name, meaning, _ := strings.Cut(line[begin:], "   ")
		name = line[:begin] + name
		if len(name) > flagColumns {
			b.WriteString("\n" + st.Wrap(name, flagColumns))
			name = ""
		}
		name += strings.Repeat(" ", flagColumns+2-len(name))
		b.WriteString("\n" + st.Wrap(name+strings.TrimSpace(meaning), len(name)))
	}
	return b.String()
}

// reflowed returns a text as lines that fit. A paragraph ends at an empty line, and at a line with an indent, which is
// an example and stays as it is.
func reflowed(text string, st terminal.Style) string {
	var b strings.Builder
	paragraph := ""
	flush := func() {
		if paragraph != "" {
			b.WriteString(st.Wrap(paragraph, 0) + "\n")
		}
		paragraph = ""
	}
	for line := range strings.Lines(strings.TrimSpace(text)) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "" || strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t"):
			flush()
			b.WriteString(line + "\n")
		case paragraph == "":
			paragraph = line
		default:
			paragraph += " " + line
		}
	}
	flush()
	return b.String()
}
