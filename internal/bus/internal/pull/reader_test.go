package pull_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/pull"
)

// names are the consumers that a reader has asked for, and has deleted.
type names struct {
	mu               sync.Mutex
	created, deleted []string
}

// answer answers no request for the first name, and each request for another one.
func (n *names) answer(a bustest.Asked) []bustest.Reply {
	n.mu.Lock()
	defer n.mu.Unlock()
	name := strings.Split(a.Subject(), ".")
	switch {
	case a.Is("CONSUMER.DELETE."):
		n.deleted = append(n.deleted, name[5])
	case !a.Is("CONSUMER.CREATE."):
	case len(n.created) == 0 || n.created[0] == name[5]:
		n.created = append(n.created, name[5])
	default:
		n.created = append(n.created, name[5])
		return bustest.OneReply(`{"num_pending":7}`)
	}
	return bustest.Silence
}

// TestAReaderTriesAnotherName: the broker may have placed a consumer on a node that is gone, and asks that node for as
// long as the name is the same. A reader tries again with another name, and deletes the first one.
func TestAReaderTriesAnotherName(t *testing.T) {
	// it mostly waits
	t.Parallel()
	var n names
	c, err := core.Open(bustest.Within(t, bustest.Patience), core.Config{URL: bustest.Scripted(t, n.answer).Url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.NC.Close)
	name, pending, err := pull.CreateReader(bustest.Within(t, bustest.Patience), c, "HF_LOG", "hf.log.>", 1)
	if err != nil || pending != 7 {
		t.Fatalf("%d pending: %v", pending, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.created) != 2 || name != n.created[1] || len(n.deleted) != 1 || n.deleted[0] != n.created[0] {
		t.Errorf("%s of %v, deleted %v", name, n.created, n.deleted)
	}
}
