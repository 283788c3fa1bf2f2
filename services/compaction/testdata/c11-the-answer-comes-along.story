The turn that carried an answer does not fit into the model: after the compaction it continues with that answer (C11, V15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"tool-result"}
4 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
5 turn.failed {"turn":"t1","error":{"kind":"context_exceeded","text":"x"},"had_output":false}
-- decide --
6 compaction.requested {"compaction":"compaction-donma7egrjgcgstubisz","reason":"mid-stream","used":0,"limit":0,"follow_up":"continue","message":"m1"}
-- facts --
7 compaction.started {"compaction":"$compaction"}
8 compaction.completed {"compaction":"$compaction","used_after":100}
-- decide --
9 turn.requested {"turn":"turn-isr4ufj6jiwuqcj4f6rr","cause":"follow-up","of_turn":"t1","message":"m1","compaction":"compaction-donma7egrjgcgstubisz","prompt":"p1","prompts":["p1"]}
-- facts --
10 turn.started {"turn":"$requested","cause":"follow-up"}
11 turn.failed {"turn":"$turn","error":{"kind":"authentication","text":"x"},"had_output":false}
12 by=retry retry.abandoned {"turn":"$last","attempt":0,"reason":"authentication"}
-- request --
send {"message":"m2","content":"try again","by":"ada"}
-- result --
13 message.accepted {"message":"m2","content":"try again","synthetic":false,"by":"ada"}
13 turn.requested {"turn":"turn-cdriwefx6g7nk3ctxixm","cause":"message","message":"m2","prompt":"p1","prompts":["p1"]}
-- state --
queued owned-by=17 last=turn-isr4ufj6jiwuqcj4f6rr,failed,authentication prompt=p1,answered queued=m2 requested=turn-cdriwefx6g7nk3ctxixm,message,message=m2 compacted=completed retry=abandoned,attempt=0,same=1,resumes=0,authentication
