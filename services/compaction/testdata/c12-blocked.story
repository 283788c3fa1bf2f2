While a blocking question is open nothing is compacted: neither in mid-stream, nor on-send, nor idle; a manual
compaction is refused (C12, P20).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000,"policy":{"idle_compaction_after_s":10}}
2 turn.started {"turn":"t1","cause":"message"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"permission","delivery":"callback"}
4 usage.reported {"turn":"t1","model":"m","tokens":{"input":900}}
-- decide --
(none)
-- request --
check {}
-- result --
{"would":false,"reason":"waiting","used":900,"limit":1000}
-- request --
send {"message":"m1","content":"hello","by":"ada"}
-- result --
5 message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
-- state --
waiting owned-by=17 turn=t1,message prompt=p1,awaiting queued=m1 used=900/1000 warn
-- request --
compact {"by":"ada"}
-- result --
409 prompt p1 waits for an answer: answer, reject or dismiss it, or compact with force
  {"status":"waiting","reason":"a blocking prompt is open","at":"@3s","seq":3,"prompt":"p1"}
-- facts --
6 prompt.withdrawn {"prompt":"p1","reason":"gone"}
-- decide --
7 turn.stop_requested {"turn":"t1","actor":"compaction","reason":"the context is full to 90 %: it is compacted, then this continues"}
7 compaction.requested {"compaction":"compaction-wjvkpveppeycay5ki642","reason":"mid-stream","used":900,"limit":1000,"follow_up":"continue"}
