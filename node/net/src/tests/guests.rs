//! Those who come with an invitation.

use super::*;

/// Tells everybody who they are, and with which invitation they came.
pub(super) struct Echo;

impl Doorkeeper for Echo {
    fn answer(&self, invitation: InvitationId, node: NodeId) -> Vec<u8> {
        [invitation.as_slice(), &node].concat()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_is_answered_and_gets_no_further() {
    let mut a = run(settings(1, &[])).await;
    let (guest, invitation) = (Secret::from([9; 32]), Secret::from([77; 32]));
    let at = [PeerAddress { node: Some([0; 32]), ..a.at() }, a.named()];
    let unknown = ask_admission(&guest, &invitation, &at[1..]).await;
    assert!(matches!(unknown, Err(AdmissionError::Unknown(_))), "{unknown:?}");
    a.net.invite(vec![([1; 8], [76; 32].into()), ([2; 8], invitation.clone())]);
    a.net.keep_door(Arc::new(Echo));
    let node = crate::listening::swarm(&settings(9, &[]), keys(), twins(), &here()).unwrap().1;
    let answer = ask_admission(&guest, &invitation, &at[1..]).await.unwrap();
    assert_eq!(answer, [[2; 8].as_slice(), &node].concat());
    // Not the node that invited; and whoever is not there.
    let other = ask_admission(&guest, &invitation, &at[..1]).await;
    assert!(matches!(other, Err(AdmissionError::Other(_))), "{other:?}");
    let nobody: PeerAddress = "127.0.0.1:1".parse().unwrap();
    let away = ask_admission(&guest, &invitation, std::slice::from_ref(&nobody)).await;
    assert!(matches!(away, Err(AdmissionError::Unreachable(_))), "{away:?}");
    ask_admission(&guest, &invitation, &[nobody, a.named()]).await.unwrap();
    // The mesh hears nothing of it, and its nodes come in as before.
    assert!(a.quiet().await.is_empty());
    let with_its_key = Settings { pre_shared_key: [77; 32].into(), ..settings(9, &[a.named()]) };
    let mut wrong = run(with_its_key).await;
    assert!(wrong.quiet().await.is_empty());
    let b = run(settings(2, &[a.named()])).await;
    a.up(b.net.node()).await;
}
