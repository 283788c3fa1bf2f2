package events

// TallyKey is the key, in the state bucket, of what the ledger has counted in the documents.
const TallyKey = "tally"
