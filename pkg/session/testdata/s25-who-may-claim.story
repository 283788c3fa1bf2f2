Claimed takes an unowned session, or an exclusive owner's of a lower incarnation; never below the last owner of an exclusive harness, nor below who took its place (§2.5).

-- facts --
1 session.opened {"incarnation":"17"}
-- claimable 16 17 18 100 abc --
16 false
17 false
18 true
100 true
abc false
-- facts --
2 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17","superseded_by":"20"}
-- claimable 16 17 19 20 21 --
16 false
17 false
19 false
20 true
21 true
-- facts --
3 session.claimed {"incarnation":"19"}
4 session.claimed {"incarnation":"20","exclusive":false}
-- ignored --
3: 1, the last session.claimed by harness: claim-refused
-- state incarnation exclusive superseded_by epoch --
incarnation: "20"
exclusive: false
superseded_by: "20"
epoch: 2
-- claimable 19 20 21 --
19 false
20 false
21 false
-- facts --
5 session.claimed {"incarnation":"21"}
6 session.released {}
-- ignored --
5: 1, the last session.claimed by harness: claim-refused
-- claimable 19 20 21 22 --
19 false
20 true
21 true
22 true
