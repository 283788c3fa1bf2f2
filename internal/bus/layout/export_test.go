package layout

// FeedPart is the part of the log's limit that the feed has.
const FeedPart = feedPart
