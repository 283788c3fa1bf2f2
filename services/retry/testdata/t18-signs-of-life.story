Facts and pings are progress, and so is a start of the service (T18).

-- facts --
1 session.opened {"incarnation":"17","policy":{"stall_after_s":60}}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
-- progress --
@50s
-- decide @62s --
watch @110s
-- facts --
90 @62s usage.reported {"turn":"t1","model":"m","tokens":{"input":1}}
-- decide @121s --
watch @122s
-- decide @122s --
91 turn.stop_requested {"turn":"t1","actor":"stall","reason":"nothing was heard of it for 1m0s"}
91 turn.failed {"turn":"t1","error":{"kind":"stalled","text":"nothing was heard of it for 1m0s"},"had_output":false}
