package bustest

// Closing turns a channel that is closed into one that gives a value.
func Closing(ch <-chan struct{}) <-chan bool {
	out := make(chan bool, 1)
	go func() {
		<-ch
		out <- true
	}()
	return out
}
