package pull

// Callback marks an error of the caller's function.
func Callback(err error) error {
	if err == nil {
		return nil
	}
	return CallbackError{err}
}

// CallbackError is an error of the caller's function.
type CallbackError struct{ err error }

// Error implements error.
func (e CallbackError) Error() string { return e.err.Error() }

// Unwrap returns the caller's error.
func (e CallbackError) Unwrap() error { return e.err }
