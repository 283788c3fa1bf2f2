An adoption may bring newer options and a newer title; a start says its own options, if it has any (§2.3).

-- facts --
1 session.opened {"incarnation":"17"}
2 by=retry turn.requested {"turn":"t1","cause":"retry","options":{"n":1}}
3 turn.started {"turn":"t1","cause":"retry","synthetic":true,"options":{"n":2}}
3 tool.started {"call":"c1","turn":"t1","name":"bash"}
-- state turn --
turn: {"id":"t1","cause":"retry","synthetic":true,"since":"@3s","attempt":1,"epoch":1,"options":{"n":2}}
-- facts --
4 tool.started {"call":"c1","turn":"t1","name":"bash","title":"make"}
-- state tools --
tools: {"c1":{"name":"bash","title":"make","turn":"t1","since":"@3s","epoch":1,"background":false}}
-- facts --
5 session.claimed {"incarnation":"18"}
5 turn.started {"turn":"t1","cause":"retry","options":{"n":3}}
5 tool.started {"call":"c1","turn":"t1","name":"bash","title":"make all"}
-- state turn tools --
turn: {"id":"t1","cause":"retry","synthetic":true,"since":"@3s","attempt":1,"epoch":2,"options":{"n":3}}
tools: {"c1":{"name":"bash","title":"make all","turn":"t1","since":"@3s","epoch":2,"background":false}}
