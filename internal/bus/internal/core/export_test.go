package core

import (
	"context"
	"encoding/json"
	"reflect"
)

// ReadQuickly says whether this reply of the broker, with a message, is read without encoding/json, and as that reads
// it.
func (c *Conn) ReadQuickly(ctx context.Context, stream string, seq uint64) (quick, same bool, err error) {
	ask, err := json.Marshal(GetRequest{Seq: seq})
	if err != nil {
		return false, false, err
	}
	m, err := c.NC.RequestWithContext(ctx, APIPrefix+"STREAM.MSG.GET."+stream, ask)
	if err != nil {
		return false, false, err
	}
	var one, other getReply
	quick = one.quickly(m.Data)
	err = json.Unmarshal(m.Data, &other)
	return quick, reflect.DeepEqual(one, other), err
}

// WhyTLS returns the reason that a client gets for an error of a handshake.
func WhyTLS(cfg Config, err error) string { return whyTLS(&cfg, err) }
