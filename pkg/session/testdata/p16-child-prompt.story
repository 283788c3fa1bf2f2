A prompt of a sub-agent is kept under its root, and closes with the child, once (P16).

-- facts --
1 session.opened {"incarnation":"17","parent":"s0","parent_call":"c7","root":"r0","agent":"explore"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"permission","delivery":"callback"}
-- state root parent parent_call agent --
root: "r0"
parent: "s0"
parent_call: "c7"
agent: "explore"
-- keys --
session.h.s
blocker.h.r0.s.p1
-- blocker p1 harness session root prompt --
harness: "h"
session: "s"
root: "r0"
prompt: "p1"
-- facts --
4 session.closed {"reason":"finished"}
5 prompt.withdrawn {"prompt":"p1","reason":"shutdown"}
-- endings --
4 prompt p1 withdrawn (turn-ended)
4 turn t1 stopped (session-closed)
-- ignored --
5: 1, the last prompt.withdrawn by harness: closed
-- keys --
session.h.s
blocker.h.r0.s.p1
