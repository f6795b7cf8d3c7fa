use super::*;
use crate::{
    name::{
        id::{EntryRef, LocalRef, LogId, MeshId, RoomId},
        key::{KeyHalves, KeySecret},
        number::Era,
    },
    wire::signatures::{KeySignature, SignedLog},
};

const DIRECTORY: RoomId = RoomId([7; 16]);

/// Made up: nobody looks at signatures here.
fn account(n: u32) -> KeyHalves {
    let mut signer = [0; 32];
    signer[..4].copy_from_slice(&n.to_be_bytes());
    KeyHalves { signer, mailbox: [1; 32] }
}

fn log(author: u8) -> LogId {
    LogId { author: NodeId([author; 32]), incarnation: 0 }
}

/// Who claims, in whose log and where, and what.
type Said = (u32, u8, u64, u8);

fn learn(accounts: &mut Accounts, (n, author, seq, label): Said, number: Option<u64>) -> Learned {
    let by = KeySignature { halves: account(n), signature: [0; 64] };
    let claim = AccountClaimed { by, labels: vec![Label([label; 16])] };
    let mut firsts = Firsts::default();
    number.into_iter().for_each(|number| firsts.add(Era::HOME.number(number), true));
    let source = (DIRECTORY, LocalRef { log: author.into(), seq });
    let numbered = firsts.numbered();
    let standing = Standing { numbered, clock: 1_000_000 - seq, log: log(author), seq };
    accounts.learn(claim, Entered { source, standing, firsts, wall_ms: seq })
}

fn order(accounts: &Accounts, label: u8) -> Vec<KeyPrint> {
    accounts.of_label(Label([label; 16])).iter().map(|claim| claim.account).collect()
}

#[test]
fn the_lowest_number_counts_then_the_position_whenever_they_are_heard() {
    let said: [(Said, Option<u64>); 5] = [
        ((1, 1, 5, 7), Some(30)),
        ((2, 2, 6, 7), Some(10)),
        ((3, 1, 7, 7), None),
        ((4, 2, 9, 7), None),
        ((1, 2, 8, 8), Some(20)),
    ];
    let prints = |of: &[u32]| of.iter().map(|n| account(*n).print()).collect::<Vec<_>>();
    for turn in 0..said.len() {
        let mut accounts = Accounts::default();
        for at in 0..said.len() {
            let (one, number) = said[(at + turn) % said.len()];
            // Each number is heard with the claim, or after it.
            let late = number.filter(|_| at % 2 == 0);
            assert_eq!(
                learn(&mut accounts, one, number.filter(|_| late.is_none())),
                Learned::Account(account(one.0).print())
            );
            assert_eq!(learn(&mut accounts, one, None), Learned::Nothing, "it is known");
            let source = (DIRECTORY, LocalRef { log: one.1.into(), seq: one.2 });
            if let Some(number) = late {
                assert!(accounts.renumber(source, Era::HOME.number(number), true));
            }
        }
        // The position is by the clock, and the later ones here have lower clocks.
        assert_eq!(order(&accounts, 7), prints(&[2, 1, 4, 3]));
        assert_eq!(order(&accounts, 8), prints(&[1]));
        let view = accounts.view(account(1).print()).expect("it is known");
        let nodes: Vec<NodeId> = view.claims.iter().map(|claim| claim.node).collect();
        assert_eq!(nodes, [log(2).author, log(1).author]);
        assert_eq!(accounts.answers(account(1).print()), Some(log(2).author), "by position");
        // A number that does not count any more decides nothing where another one counts.
        accounts.lose(|_, number| number == Era::HOME.number(10));
        assert_eq!(order(&accounts, 7), prints(&[1, 2, 4, 3]));
        let elsewhere = (RoomId([9; 16]), LocalRef { log: 1, seq: 5 });
        assert!(!accounts.renumber(elsewhere, Era::HOME.number(1), true));
    }
}

#[test]
fn claims_beyond_a_cut_do_not_count_and_an_account_without_any_is_unknown() {
    let mut accounts = Accounts::default();
    for said in [(1, 1, 5, 7), (1, 1, 9, 8), (1, 2, 3, 7), (2, 1, 7, 7)] {
        learn(&mut accounts, said, None);
    }
    let cut = |accounts: &mut Accounts, author, seq| {
        let from = EntryRef { log: log(author), seq };
        accounts.forget(Void { directory: DIRECTORY, from });
    };
    let [one, two] = [1, 2].map(|n| account(n).print());
    cut(&mut accounts, 1, 6);
    assert!(accounts.is_known(one) && !accounts.is_known(two));
    assert_eq!((order(&accounts, 7), order(&accounts, 8)), (vec![one], vec![]));
    assert_eq!((accounts.claimed_by(log(1).author), accounts.claimed_by(log(2).author)), (1, 1));
    cut(&mut accounts, 1, 0);
    assert_eq!((order(&accounts, 7), accounts.answers(one)), (vec![one], Some(log(2).author)));
    cut(&mut accounts, 2, 0);
    assert_eq!((accounts.len(), accounts.claimed_by(log(2).author)), (0, 0));
    assert!(accounts.by_label.is_empty() && accounts.by_source.is_empty());
}

#[test]
fn so_many_accounts_count_of_a_node_and_so_many_claims_of_an_account() {
    let mut accounts = Accounts::default();
    let max = u32::try_from(ACCOUNTS_PER_NODE_MAX).expect("few");
    for n in 0..=max {
        let learned = learn(&mut accounts, (n, 1, n.into(), 7), None);
        assert_eq!(learned == Learned::Nothing, n == max);
    }
    assert_eq!(
        (accounts.len(), accounts.claimed_by(log(1).author)),
        (ACCOUNTS_PER_NODE_MAX, ACCOUNTS_PER_NODE_MAX)
    );
    assert_ne!(learn(&mut accounts, (max, 2, 1, 7), None), Learned::Nothing, "another node's");
    let seqs = 10_000..10_000 + u64::try_from(ACCOUNT_CLAIMS_MAX).expect("few");
    let learned = seqs.map(|seq| learn(&mut accounts, (5, 1, seq, 8), None));
    let counted = learned.filter(|learned| *learned != Learned::Nothing).count();
    assert_eq!(counted, ACCOUNT_CLAIMS_MAX - 1, "and the first one");
}

#[test]
fn one_that_has_more_labels_than_it_may_counts_not() {
    let mut accounts = Accounts::default();
    let key = KeySecret::of(&"k".repeat(32));
    let signed = SignedLog { mesh: MeshId([1; 16]), node: NodeId([1; 32]) };
    let mut claim = |labels: usize| {
        let claim = AccountClaimed::sign(&key, &signed, vec![Label([1; 16]); labels]);
        let source = (DIRECTORY, LocalRef { log: 1, seq: labels as u64 });
        let standing =
            Standing { numbered: Numbered::Not, clock: 1, log: log(1), seq: labels as u64 };
        let entered = Entered { source, standing, firsts: Firsts::default(), wall_ms: 0 };
        accounts.learn(claim.expect("it is long enough"), entered)
    };
    assert_eq!(claim(crate::limits::ACCOUNT_LABELS_MAX + 1), Learned::Nothing);
    assert_eq!(claim(crate::limits::ACCOUNT_LABELS_MAX), Learned::Account(key.print()));
}
