A message with a known id: the same content is a success with its place, also after it was delivered or withdrawn; other
content is refused (C6, V10).

-- facts --
1 session.opened {"incarnation":"17"}
-- request --
send {"message":"m1","content":{"a":1,"b":[2]},"by":"ada"}
-- result --
2 message.accepted {"message":"m1","content":{"a":1,"b":[2]},"synthetic":false,"by":"ada"}
2 turn.requested {"turn":"turn-whvbmfh2pdd47osuipxj","cause":"message","message":"m1"}
-- request --
send {"message":"m1","content":{"b":[2], "a":1},"by":"ada"}
-- result --
nothing to append, see 2
-- request --
send {"message":"m1","content":{"a":2},"by":"ada"}
-- result --
409 message m1 was sent with another content: choose another id
  {"status":"queued","at":"@1s","seq":2}
-- request --
send {"message":"m1","ref":"o1","by":"ada"}
-- result --
409 message m1 was sent with another content: choose another id
  {"status":"queued","at":"@1s","seq":2}
-- facts --
3 turn.started {"turn":"$requested","cause":"message"}
-- request --
send {"message":"m1","content":{"a":1,"b":[2]},"by":"ada"}
-- result --
nothing to append, see 2
-- request --
send {"message":"m1","content":"x","by":"ada"}
-- result --
409 message m1 was sent with another content: choose another id
  {"status":"delivered","at":"@3s","seq":2}
-- request --
send {"message":"m2","content":"x","by":"ada"}
-- result --
4 message.accepted {"message":"m2","content":"x","synthetic":false,"by":"ada"}
-- request --
withdraw {"message":"m2","by":"ada"}
-- result --
5 message.withdrawn {"message":"m2","by":"ada"}
-- request --
send {"message":"m2","content":"x","by":"ada"}
-- result --
nothing to append, see 4
