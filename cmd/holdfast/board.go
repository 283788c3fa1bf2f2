package main

import (
	"fmt"

	page "github.com/holdfast-dev/holdfast/internal/board"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/health"
)

// boardOrigins returns the origins of the board: the addresses of a server on loopback. There is no board on another
// server, because the board has no log-in.
func (a *app) boardOrigins(h *health.Server) []string {
	if !a.board {
		return nil
	}
	var origins []string
	for _, host := range h.Hosts() {
		origins = append(origins, "http://"+host)
	}
	return origins
}

// mountBoard serves the board, if the broker accepts its websockets.
func (a *app) mountBoard(h *health.Server, srv *embed.Server) error {
	broker := srv.WebsocketAddr()
	if broker == "" {
		return nil
	}
	handler, err := page.New(page.Cell{Prefix: a.prefix, Version: version, Person: a.person()}, broker)
	if err != nil {
		return err
	}
	h.Handle("/", handler)
	h.OnEnd(handler.Close)
	a.boardURL = h.URL() + "/"
	return nil
}

// boardLine says where the board is, or why it is not served.
func (a *app) boardLine() string {
	switch {
	case a.boardURL != "":
		return fmt.Sprintf("  board   %s\n", a.boardURL)
	case a.board:
		return fmt.Sprintf("  board   not served: --http %s is beyond loopback, and the board has no log-in\n", a.http)
	}
	return ""
}
