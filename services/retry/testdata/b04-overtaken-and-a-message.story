A planned retry is abandoned because another turn followed it. A message that a person sent after that turn does not
wait for a resume (T6, C7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"server_error","text":"x"}}
-- facts --
5 turn.started {"turn":"t2","cause":"follow-up","synthetic":true}
6 turn.stopped {"turn":"t2","actor":"harness"}
7 message.accepted {"message":"m2","content":"x"}
-- decide --
8 retry.abandoned {"turn":"t1","attempt":1,"reason":"overtaken"}
-- state held_seq queue --
held_seq: 6
queue: [{"message":"m2","seq":7,"synthetic":false,"at":"@7s"}]
