package pull

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
)

// Forget deletes a consumer without waiting for the reply; otherwise the broker would remove it later.
func Forget(c *core.Conn, stream, consumer string) {
	if err := c.NC.PublishRequest(core.APIPrefix+"CONSUMER.DELETE."+stream+"."+consumer, nats.NewInbox(),
		nil); err != nil {
		c.Log.Debug().AnErr("err", err).Str("entity", "consumer").Str("id", consumer).Msg("left to expire")
	}
}

// Limits of a reader that follows a stream.
const (
	WindowMax      = 2_048 // messages asked for ahead
	SetupTimeoutMS = 1_000 // one attempt to start again: the broker may not reply during an election
)

// CreateConsumer is the request of the JetStream API; action is create, update, or empty for either.
type CreateConsumer struct {
	Stream string                   `json:"stream_name"`
	Config jetstream.ConsumerConfig `json:"config"`
	Action string                   `json:"action,omitempty"`
}

// CreateReader makes a consumer for a stream's messages from a sequence on, and returns how many there are now. While
// the broker does not answer, it tries again until ctx ends, each time with another name: the leader may have placed
// the consumer on a node that is gone, and would ask the same node about the same name again.
func CreateReader(ctx context.Context, c *core.Conn, stream, filter string, from uint64) (name string, pending uint64,
	err error) {
	pace := core.NewBackoff()
	for {
		if name, pending, err = createOnce(ctx, c, stream, filter, from); err == nil {
			return name, pending, nil
		}
		if !errors.Is(err, core.ErrUnreachable) || c.NC.IsClosed() {
			return "", 0, err
		}
		Forget(c, stream, name)
		if !core.Pause(ctx, pace.NextBackOff()) {
			return "", 0, c.Late("read "+stream, err)
		}
	}
}

// createOnce makes one attempt of [CreateReader]. The name is that of the attempt, also with an error.
func createOnce(ctx context.Context, c *core.Conn, stream, filter string, from uint64) (name string, pending uint64,
	err error) {
	cfg := jetstream.ConsumerConfig{
		Name:              "read-" + core.NewSecret(),
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       from,
		AckPolicy:         jetstream.AckNonePolicy,
		FilterSubject:     filter,
		InactiveThreshold: IdleMax,
		MemoryStorage:     true,
		Replicas:          1,
	}
	body, err := json.Marshal(CreateConsumer{Stream: stream, Config: cfg, Action: "create"})
	if err != nil {
		return cfg.Name, 0, fmt.Errorf("read %s: %w", stream, err)
	}
	var info jetstream.ConsumerInfo
	subject := core.APIPrefix + "CONSUMER.CREATE." + stream + "." + cfg.Name + "." + filter
	err = c.CallOnce(ctx, "read "+stream, subject, body, &info)
	return cfg.Name, info.NumPending, err
}
