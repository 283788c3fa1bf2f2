package bustest

import (
	"strings"

	"github.com/holdfast-dev/holdfast/internal/embed"
)

// As is the address of a broker with a login: the password of each user is its name.
func As(s *embed.Server, user string) string {
	return strings.Replace(s.URL(), "//", "//"+user+":"+user+"@", 1)
}
