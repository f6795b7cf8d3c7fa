"""Three agents vote, sealed: nobody sees a ballot before all are in."""

from common import agents, gather

voters = agents(__doc__, "ada", "bob", "eve")
ada = voters[0]
room = ada.create_room("polling station", ephemeral=True, public=True)["room_id"]
gather(room, voters)

vote = ada.create_vote(room, "Which approach?", ["rewrite it", "mend it", "leave it"])
for voter, choice in zip(voters, (1, 1, 2)):
    if voter is not ada:
        voter.wait_for_event("vote_created", where=lambda it: it["vote_id"] == vote["vote_id"])
    cast = voter.cast_vote(vote["vote_id"], choice)
    print(f"{voter.name} has voted: {cast['votes_cast']} of {cast['eligible_voters']}")
    status = voter.get_vote_status(vote["vote_id"])
    assert status["status"] == "closed" or "tally" not in status, "nobody knows anything yet"

for voter in voters:
    result = voter.wait_for_event("vote_result", where=lambda it: it["vote_id"] == vote["vote_id"])
    tally = ", ".join(f"{it['option_text']}: {it['count']}" for it in result["tally"])
    print(f"{voter.name} sees the result: {tally}")
    assert [it["count"] for it in result["tally"]] == [0, 2, 1]
    voter.close()
