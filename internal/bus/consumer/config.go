package consumer

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/pull"
)

// uncheckedExpiresMS is the limit of a pull's duration in the configuration of a durable that was just created. The
// broker refuses longer ones, so no process gets a delivery from it before its state was checked.
const uncheckedExpiresMS = 1

// actionCreate refuses to change a consumer that exists with another configuration.
const actionCreate = "create"

// errStale is the reason to create a durable once more: the broker gave it the state of a deleted one.
var errStale = errors.New("the new consumer has the state of a deleted one")

// ensure creates the durable, or updates it.
//
// The broker removes a deleted consumer from its tables, and its files after that. A consumer of the same name that is
// created in between begins with the state in those files: it delivers only what the deleted one did not. So a durable
// is created with a configuration in which no process can use it. It gets its own configuration once its state is
// known to be a new one. Otherwise it is deleted: the broker replies after the files are removed. The next attempt
// creates it.
func (c *consumption) ensure(ctx context.Context) error {
	if c.exists {
		return nil
	}
	cfg := c.config()
	cfg.MaxRequestExpires = uncheckedExpiresMS * time.Millisecond
	if err := c.create(ctx, cfg, actionCreate); err != nil && !existsOtherwise(err) {
		return err
	}
	info, err := c.infoSoon(ctx)
	if err != nil {
		return err
	}
	checked := info.Config.MaxRequestExpires == 0
	if !checked {
		err = c.fresh(ctx, info)
	}
	if err == nil {
		err = c.create(ctx, c.config(), "")
	}
	if !checked && (errors.Is(err, errStale) || existsOtherwise(err)) {
		return errors.Join(err, c.remove(ctx))
	}
	c.exists = err == nil
	return err
}

// config returns the configuration of the durable.
func (c *consumption) config() jetstream.ConsumerConfig {
	cfg := jetstream.ConsumerConfig{
		Durable:           c.name,
		AckPolicy:         jetstream.AckExplicitPolicy,
		AckWait:           ackWaitMS * time.Millisecond,
		MaxDeliver:        core.NeverMax, // beyond a limit messages would be skipped without a notice
		MaxAckPending:     ackPendingMax,
		PriorityPolicy:    jetstream.PriorityPolicyPinned,
		PriorityGroups:    []string{consumeGroup},
		PinnedTTL:         pinTTLMS * time.Millisecond,
		InactiveThreshold: c.idle,
	}
	if c.bucket != "" {
		cfg.DeliverPolicy = jetstream.DeliverLastPerSubjectPolicy
	}
	if len(c.filters) == 1 {
		cfg.FilterSubject = c.filters[0]
	} else {
		cfg.FilterSubjects = c.filters
	}
	return cfg
}

// create sends a configuration to the broker.
func (c *consumption) create(ctx context.Context, cfg jetstream.ConsumerConfig, action string) error {
	subject := c.subject("CREATE")
	if cfg.FilterSubject != "" {
		subject += "." + cfg.FilterSubject
	}
	ctx, cancel := context.WithTimeout(ctx, joinTimeoutMS*time.Millisecond)
	defer cancel()
	return c.call(ctx, "consume", subject, pull.CreateConsumer{Stream: c.stream, Config: cfg, Action: action},
		new(core.Nothing))
}

// existsOtherwise reports whether the broker has a consumer of this name that it did not change. It does not change one
// whose files were removed, because the deletion of the one before it ended late.
func existsOtherwise(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) &&
		(api.ErrorCode == jetstream.JSErrCodeConsumerExists || api.ErrorCode == jetstream.JSErrCodeConsumerCreate)
}

// infoSoon is info with the limit of one request.
func (c *consumption) infoSoon(ctx context.Context) (*jetstream.ConsumerInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, joinTimeoutMS*time.Millisecond)
	defer cancel()
	return c.info(ctx)
}

// fresh fails with errStale if a durable that no process has used is not at the start of its stream. A reset leaves a
// place and no deliveries, so the place counts, too. The start can only be later than when the durable was created.
func (c *consumption) fresh(ctx context.Context, info *jetstream.ConsumerInfo) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeoutMS*time.Millisecond)
	defer cancel()
	stream, err := c.conn.StreamInfo(ctx, c.stream)
	if err != nil {
		return err
	}
	if info.Delivered.Consumer > 0 || info.NumAckPending > 0 ||
		max(info.Delivered.Stream, info.AckFloor.Stream) >= max(stream.State.FirstSeq, 1) {
		return errStale
	}
	return nil
}

// remove deletes the durable.
func (c *consumption) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeoutMS*time.Millisecond)
	defer cancel()
	return c.call(ctx, "delete consumer", c.subject("DELETE"), nil, new(core.Nothing))
}
