package main

import (
	"context"
	"fmt"
	"time"

	page "github.com/holdfast-dev/holdfast/internal/board"
	"github.com/holdfast-dev/holdfast/internal/bus"
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

// examineMax is the time that the doctor has for the operator's page: less than the http server gives a response, so
// that findings about a cell that does not answer arrive.
const examineMax = 7 * time.Second

// mountBoard serves the board, if the broker accepts its websockets. The doctor of its operator's page uses connections
// of connect.
func (a *app) mountBoard(h *health.Server, srv *embed.Server,
	connect func(ctx context.Context, name string) (*bus.Bus, error)) error {
	broker := srv.WebsocketAddr()
	if broker == "" {
		return nil
	}
	doctor := func(ctx context.Context, _ page.Login) any {
		return a.examined(ctx, srv.URL(), func(ctx context.Context) (*bus.Bus, error) { return connect(ctx, "doctor") })
	}
	handler, err := page.New(page.Cell{Prefix: a.prefix, Version: version, Person: a.person()}, broker, doctor)
	if err != nil {
		return err
	}
	h.Handle("/", handler)
	h.OnEnd(handler.Close)
	a.boardURL = h.URL() + "/"
	return nil
}

// examined returns the findings of the doctor about the cell at a broker, over a connection of connect, for a page.
func (a *app) examined(ctx context.Context, at string, connect func(context.Context) (*bus.Bus, error)) []finding {
	inside := *a
	inside.nats, inside.timeout = at, examineMax
	ctx, cancel := context.WithTimeout(ctx, examineMax)
	defer cancel()
	found, err := inside.examineOver(ctx, connect)
	if err != nil && len(found) == 0 || err != nil && found[len(found)-1].Level != levelWrong {
		found = append(found, finding{Check: "doctor", Level: levelWrong, Found: plain(err.Error())})
	}
	return found
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
