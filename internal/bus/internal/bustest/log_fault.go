package bustest

import (
	"encoding/json"
	"fmt"
)

// Question is a request for one stored message.
type Question struct {
	Seq  int    `json:"seq"`
	Next string `json:"next_by_subj"`
	Last string `json:"last_by_subj"`
}

// Readers answers what a reader of a stream needs: pending is what the consumer says is to come, deliver what a pull
// gets.
func Readers(pending int, deliver func(pull int) []Reply, get func(q Question) []Reply) func(Asked) []Reply {
	pulls := 0
	return func(a Asked) []Reply {
		switch {
		case a.Is("STREAM.INFO"):
			return OneReply(`{"state":{"last_seq":10}}`)
		case a.Is("CONSUMER.CREATE"):
			return OneReply(fmt.Sprintf(`{"num_pending":%d}`, pending))
		case a.Is("CONSUMER.MSG.NEXT"):
			pulls++
			return deliver(pulls)
		case a.Is("STREAM.MSG.GET"):
			var q Question
			if json.Unmarshal([]byte(a.Body), &q) != nil {
				return Trouble
			}
			return get(q)
		}
		return Silence
	}
}
