package reconciler

// Name is the service's name on the wire.
const Name = "reconciler"

const stateStarting = "starting"
