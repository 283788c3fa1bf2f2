A call that waits for a child is held: its session waits, its turn stays open; when the child has settled the call is closed with its outcome and the turn continued once (P16).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 tool.started {"call":"c1","turn":"t1","name":"task","title":"explore"}
3 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17","waits_for":[{"call":"c1","child":"s2"},{"call":"c1","child":"s3"},{"call":"c1","child":"s2"},{"call":"c9","child":"s4"}]}
-- state phase owned left turn tools waits_for --
phase: "waiting"
owned: false
left: "orphaned"
turn: {"id":"t1","cause":"message","synthetic":false,"since":"@2s","attempt":1,"epoch":1}
tools: {"c1":{"name":"task","title":"explore","turn":"t1","since":"@2s","epoch":1,"background":false}}
waits_for: [{"call":"c1","child":"s2"},{"call":"c1","child":"s3"}]
-- facts --
4 by=reconciler tool.failed {"call":"c1","error":{"kind":"interrupted","text":"the sub-agent was interrupted"},"synthetic":true}
4 by=reconciler turn.requested {"turn":"t2","cause":"answer","of_turn":"t1"}
-- state phase turn tools waits_for pending --
phase: "queued"
turn: {"id":"t1","cause":"message","synthetic":false,"since":"@2s","attempt":1,"epoch":1}
tools: (nothing)
waits_for: (nothing)
pending: {"turn":{"turn":"t2","cause":"answer","of_turn":"t1","attempt":0,"at":"@4s","seq":4}}
-- facts --
5 session.claimed {"incarnation":"18"}
5 turn.started {"turn":"t2","cause":"answer","synthetic":true,"of_turn":"t1"}
-- endings --
4 tool c1 failed (the sub-agent was interrupted)
5 turn t1 continued
-- state phase turn --
phase: "running"
turn: {"id":"t2","cause":"answer","synthetic":true,"of_turn":"t1","since":"@5s","attempt":1,"epoch":2}
