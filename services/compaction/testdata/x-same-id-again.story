A message under an id that was used: the same content is a success with its place, also after it was delivered or taken back; another one is refused (C6, V10).

-- facts --
1 session.opened {"incarnation":"17"}
-- wish --
send {"message":"m1","content":{"a":1,"b":[2]},"by":"ada"}
-- comes to --
message.accepted {"message":"m1","content":{"a":1,"b":[2]},"synthetic":false,"by":"ada"}
turn.requested {"turn":"turn-whvbmfh2pdd47osuipxj","cause":"message","message":"m1"}
-- wish --
send {"message":"m1","content":{"b":[2], "a":1},"by":"ada"}
-- comes to --
done at 2
-- wish --
send {"message":"m1","content":{"a":2},"by":"ada"}
-- comes to --
409 message m1 was sent with another content: choose another id
  {"status":"queued","at":"2026-03-01T12:00:01Z","seq":2}
-- wish --
send {"message":"m1","ref":"o1","by":"ada"}
-- comes to --
409 message m1 was sent with another content: choose another id
  {"status":"queued","at":"2026-03-01T12:00:01Z","seq":2}
-- facts --
3 turn.started {"turn":"$turn","cause":"message"}
-- wish --
send {"message":"m1","content":{"a":1,"b":[2]},"by":"ada"}
-- comes to --
done at 2
-- wish --
send {"message":"m1","content":"x","by":"ada"}
-- comes to --
409 message m1 was sent with another content: choose another id
  {"status":"delivered","at":"2026-03-01T12:00:03Z","seq":2}
-- wish --
send {"message":"m2","content":"x","by":"ada"}
-- comes to --
message.accepted {"message":"m2","content":"x","synthetic":false,"by":"ada"}
-- wish --
withdraw {"message":"m2","by":"ada"}
-- comes to --
message.withdrawn {"message":"m2","by":"ada"}
-- wish --
send {"message":"m2","content":"x","by":"ada"}
-- comes to --
done at 4
