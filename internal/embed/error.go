package embed

import (
	"errors"
	"fmt"
)

var (
	// ErrDirInUse reports that another process, or another server of this process, uses the data directory. Stop it, or
	// use another directory.
	ErrDirInUse = errors.New("data directory in use")
	// ErrNotOurs reports that the directory holds other data. Use another directory, or an empty one.
	ErrNotOurs = errors.New("not a Holdfast data directory")
	// ErrNewerData reports that a later version made the directory. Upgrade this program.
	ErrNewerData = errors.New("data of a newer version")
	// ErrForeignFile reports a file among the broker's that is not regular, or larger than the broker writes. Move it
	// away.
	ErrForeignFile = errors.New("foreign file in the data directory")
	// ErrPortInUse reports that another process listens on the address. Stop it, or choose another port (0: any).
	ErrPortInUse = errors.New("port in use")
)

func portInUse(addr string) error {
	return fmt.Errorf("%w: %s: stop what listens there, or choose another address (port 0: any)", ErrPortInUse, addr)
}
