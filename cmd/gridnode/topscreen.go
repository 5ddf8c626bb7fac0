//go:build !client

package main

import (
	"errors"
	"strings"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
)

// topScreen is what top shows on a terminal. It implements tea.Model.
type topScreen struct {
	take   func() (*overview, error)
	every  time.Duration
	rounds int // how often it looks yet; 0: until it is told to end

	shown         *overview
	err           error // of the last look; what is shown is older
	looks         int   // begun
	looking       bool
	width, height int  // of the terminal
	first         int  // of the jobs that are shown
	alive         bool // jobs that are over are left out
}

// taken is what a look has found.
type taken struct {
	o   *overview
	err error
}

// due says that the time for the next look has come, if none was begun meanwhile.
type due struct{ looks int }

// showTop looks once, so that what is wrong with the daemon is said on the terminal, and then
// shows the screen until somebody ends it.
func showTop(cmd *cobra.Command, s *topScreen) error {
	o, err := s.take()
	if err != nil {
		return err
	}
	s.shown = o
	_, err = tea.NewProgram(s, tea.WithContext(cmd.Context()), tea.WithInput(cmd.InOrStdin()), tea.WithOutput(cmd.OutOrStdout())).Run()
	if errors.Is(err, tea.ErrInterrupted) || cmd.Context().Err() != nil {
		return exitStatus(128 + int(syscall.SIGINT))
	}
	return err
}

// Init implements tea.Model.
func (s *topScreen) Init() tea.Cmd { return s.pause() }

func (s *topScreen) pause() tea.Cmd {
	looks := s.looks
	return tea.Tick(s.every, func(time.Time) tea.Msg { return due{looks} })
}

func (s *topScreen) look() tea.Cmd {
	if s.looking {
		return nil
	}
	s.looking = true
	s.looks++
	return func() tea.Msg {
		o, err := s.take()
		return taken{o, err}
	}
}

// Update implements tea.Model.
func (s *topScreen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = msg.Width, msg.Height
	case due:
		if msg.looks == s.looks {
			return s, s.look()
		}
	case taken:
		s.looking = false
		if s.err = msg.err; msg.err == nil {
			s.shown = msg.o
		}
		if s.rounds > 0 && s.looks+1 >= s.rounds { // one was before the screen
			return s, tea.Quit
		}
		return s, s.pause()
	case tea.KeyPressMsg:
		return s, s.key(msg.String())
	}
	return s, nil
}

func (s *topScreen) key(name string) tea.Cmd {
	page := max(s.height/2, 1)
	switch name {
	case "q", "esc", "ctrl+c":
		return tea.Quit
	case "r":
		return s.look()
	case "o":
		s.alive, s.first = !s.alive, 0
	case "up", "k":
		s.first--
	case "down", "j":
		s.first++
	case "pgup":
		s.first -= page
	case "pgdown", "space":
		s.first += page
	case "home", "g":
		s.first = 0
	}
	return nil
}

// topKeys is the last line.
const topKeys = "q end  ↑↓ move  o leave out what is over  r look now"

// View implements tea.Model.
func (s *topScreen) View() tea.View {
	v := tea.NewView(strings.Join(s.lines(), "\n"))
	v.AltScreen = true
	return v
}

// lines returns what is shown, as many lines as the terminal has and none wider. Of the
// sites there are at most as many as leave jobs half of it.
func (s *topScreen) lines() []string {
	if s.height < 1 || s.width < 1 {
		return nil
	}
	o := *s.shown
	if s.alive {
		for i := range o.Jobs {
			if o.Jobs[i].Over() { // they are the last
				o.Jobs = o.Jobs[:i]
				break
			}
		}
	}
	s.first = max(min(s.first, len(o.Jobs)-1), 0)
	plain := listing{format: formatTable}
	lines := []string{o.headline()}
	switch {
	case s.err != nil:
		lines = append(lines, "no answer: "+cellText(s.err.Error())+"; what is shown is older")
	case o.Trouble != "":
		lines = append(lines, cellText(o.Trouble))
	default:
		lines = append(lines, "")
	}
	var sites, jobs strings.Builder // no write to them fails
	_ = printList(&sites, plain, siteColumns(o.At.Time(), o.Sites), o.Sites[:min(len(o.Sites), max(s.height/2-4, 1))])
	_ = printList(&jobs, plain, topColumns(), o.Jobs[s.first:min(s.first+s.height, len(o.Jobs))])
	headings := []int{0, len(lines)}
	lines = append(lines, splitLines(sites.String())...)
	lines = append(lines, "")
	headings = append(headings, len(lines))
	lines = append(lines, splitLines(jobs.String())...)
	lines = lines[:min(len(lines), max(s.height-1, 1))]
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], s.width, "…")
	}
	for _, i := range headings {
		if i < len(lines) {
			lines[i] = ansi.Style{}.Bold().Styled(lines[i])
		}
	}
	for len(lines) < s.height-1 {
		lines = append(lines, "")
	}
	if s.height > 1 {
		lines = append(lines, ansi.Truncate(topKeys, s.width, "…"))
	}
	return lines
}

func splitLines(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }
