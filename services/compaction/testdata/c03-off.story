A threshold of 1 disables compaction, on-send and in mid-stream; retry abandons a turn that overflows (C3, C11).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000,"policy":{"compaction_threshold":1}}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":2000}}
-- decide --
(none)
-- facts --
4 turn.failed {"turn":"t1","error":{"kind":"context_exceeded","text":"too long"},"had_output":false}
-- decide --
(none)
-- facts --
5 retry.abandoned {"turn":"t1","attempt":0,"reason":"context_exceeded"}
-- request --
send {"message":"m1","content":"hi","by":"ada"}
-- result --
6 message.accepted {"message":"m1","content":"hi","synthetic":false,"by":"ada"}
6 turn.requested {"turn":"turn-t5rs7frpb37upf6vc2wt","cause":"message","message":"m1"}
-- request --
check {}
-- result --
{"would":false,"reason":"disabled","used":2000,"limit":1000}
