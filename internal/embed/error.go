package embed

import (
	"errors"
	"fmt"
)

var (
	// ErrDirInUse says another process, or another server of this one, has the data directory: stop that one, or use
	// another directory.
	ErrDirInUse = errors.New("embed: data directory in use")
	// ErrNotOurs says the directory holds something else: use another one, or an empty one.
	ErrNotOurs = errors.New("embed: not a Holdfast data directory")
	// ErrNewerData says a later version made the directory: upgrade this program.
	ErrNewerData = errors.New("embed: data of a newer version")
	// ErrPortInUse says somebody listens on that address: stop that one, or choose another port (0: any).
	ErrPortInUse = errors.New("embed: port in use")
)

func portInUse(addr string) error {
	return fmt.Errorf("%w: %s: stop what listens there, or choose another address (port 0: any)", ErrPortInUse, addr)
}
