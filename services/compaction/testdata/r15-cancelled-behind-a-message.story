A person's message after a crash comes first, even if it is compacted for and the overtaken retry is abandoned
meanwhile: it did not wait behind that retry (R15, C4, C7).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 usage.reported {"turn":"t1","model":"m","tokens":{"input":800}}
4 by=reconciler session.orphaned {"incarnation":"17","reason":"lease-ended"}
4 by=reconciler turn.interrupted {"turn":"t1","reason":"owner-lost"}
5 by=retry retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@6s","error":{"kind":"interrupted","text":"owner-lost"}}
-- request --
send {"message":"m1","content":"hello","by":"ada"}
-- result --
6 message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
6 compaction.requested {"compaction":"compaction-jfpi3ubgie56llppnvaw","reason":"on-send","used":800,"limit":1000,"follow_up":"message","message":"m1"}
-- facts --
7 by=retry as=ada retry.abandoned {"turn":"t1","attempt":1,"reason":"cancelled"}
8 session.claimed {"incarnation":"18"}
9 compaction.started {"compaction":"$compaction"}
10 compaction.completed {"compaction":"$compaction","used_after":100}
-- decide --
11 turn.requested {"turn":"turn-da7jq4s2f6txu53vr2jc","cause":"follow-up","message":"m1","compaction":"compaction-jfpi3ubgie56llppnvaw"}
-- state --
queued owned-by=18 last=t1,interrupted,owner-lost queued=m1 requested=turn-da7jq4s2f6txu53vr2jc,follow-up,message=m1 compacted=completed retry=abandoned,attempt=1,same=0,resumes=0,cancelled
