The meaning of usage follows the policy: its limit wins over the reported one, its threshold sets the warning; unknown
limits give no warning (§3).

-- facts --
1 session.opened {"incarnation":"17"}
2 usage.reported {"turn":"","model":"m","tokens":{"input":700}}
-- state usage --
usage: {"tokens":{"input":700,"cache_read":0,"cache_write":0,"output":0,"reasoning":0},"used":700,"limit":0,"percent":0,"warn":false,"at":"@2s"}
-- facts --
3 usage.reported {"turn":"","tokens":{"input":700},"context_limit":1000}
-- state usage model --
usage: {"tokens":{"input":700,"cache_read":0,"cache_write":0,"output":0,"reasoning":0},"used":700,"limit":1000,"percent":70,"warn":true,"at":"@3s"}
model: "m"
-- request @4s --
configure {"policy":{"compaction_threshold":0.8},"by":"ada"}
-- result --
4 session.configured {"policy":{"compaction_threshold":0.8},"by":"ada"}
-- state usage --
usage: {"tokens":{"input":700,"cache_read":0,"cache_write":0,"output":0,"reasoning":0},"used":700,"limit":1000,"percent":70,"warn":true,"at":"@3s"}
-- request @5s --
configure {"policy":{"compaction_threshold":0.81},"by":"ada"}
-- result --
5 session.configured {"policy":{"compaction_threshold":0.81},"by":"ada"}
-- state usage --
usage: {"tokens":{"input":700,"cache_read":0,"cache_write":0,"output":0,"reasoning":0},"used":700,"limit":1000,"percent":70,"warn":false,"at":"@3s"}
-- request @6s --
configure {"policy":{"compaction_threshold":1.0,"context_limit":700},"by":"ada"}
-- result --
6 session.configured {"policy":{"compaction_threshold":1,"context_limit":700},"by":"ada"}
-- state usage --
usage: {"tokens":{"input":700,"cache_read":0,"cache_write":0,"output":0,"reasoning":0},"used":700,"limit":700,"percent":100,"warn":false,"at":"@3s"}
-- facts --
7 turn.started {"turn":"t1","cause":"message"}
8 turn.completed {"turn":"t1"}
9 turn.started {"turn":"t2","cause":"message"}
10 usage.reported {"turn":"t1","model":"m","tokens":{"input":1}}
11 turn.completed {"turn":"t2"}
12 usage.reported {"turn":"t1","model":"m","tokens":{"input":1}}
13 usage.reported {"turn":"t9","model":"m","tokens":{"input":1}}
14 usage.reported {"turn":"t2","model":"m","tokens":{"input":2}}
-- ignored --
10: 1, the last usage.reported by harness: turn-ended
12: 1, the last usage.reported by harness: turn-ended
13: 1, the last usage.reported by harness: unknown
-- state usage --
usage: {"tokens":{"input":2,"cache_read":0,"cache_write":0,"output":0,"reasoning":0},"used":2,"limit":700,"percent":0.2,"warn":false,"at":"@14s"}
