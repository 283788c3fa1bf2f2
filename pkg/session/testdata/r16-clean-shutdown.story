A clean shutdown releases the session: it has no owner, its callback prompts were withdrawn, kept ones stay, and the
next incarnation takes it at once (R16).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"permission","delivery":"callback"}
2 prompt.requested {"prompt":"p2","kind":"question","delivery":"message"}
3 prompt.withdrawn {"prompt":"p1","reason":"shutdown"}
3 session.released {"reason":"shutdown"}
-- state phase owned left --
phase: "waiting"
owned: false
left: "released"
-- pending --
p2
-- blocker p1 status reason --
status: "withdrawn"
reason: "shutdown"
-- blocker p2 status owned --
status: "awaiting"
owned: false
-- facts --
4 tool.started {"call":"c1","name":"bash"}
-- ignored --
4: 1, the last tool.started by harness: not-owner
-- claimable 16 17 18 --
16 false
17 true
18 true
-- facts --
5 session.claimed {"incarnation":"18"}
-- state owned left epoch --
owned: true
left: (nothing)
epoch: 2
