//! People who are signed in, and links that sign somebody in. Both are remembered by the hash of a secret that only the person's
//! browser has, and both are in memory alone: a node that starts anew asks for keys again.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use bridge::{read::Visitor, seam::principal::principal, secret::Secret};
use mesh::name::id::{AgentId, KeyPrint};
use sha2::{Digest as _, Sha256};

use crate::{
    limits::{
        ATTEMPTS_PER_MINUTE, LINK_GOOD_FOR, LINKS_MAX, LINKS_PER_KEY_MAX, LIVE_PER_KEY_MAX,
        LIVE_PER_PERSON_MAX, NETWORKS_COUNTED_MAX, SIGNED_IN_FOR, SIGNED_IN_MAX,
        SIGNED_IN_PER_KEY_MAX, SIGNED_IN_PER_NETWORK_MAX,
    },
    reading::Reading,
};

/// The hash of a secret.
type Print = [u8; 32];

/// A person who is signed in.
pub(crate) struct Person {
    /// The key that the person has shown.
    pub(crate) key: Secret,
    /// The holder of it: reads what the key may.
    pub(crate) holder: Visitor,
    /// As people are called.
    pub(crate) name: String,
    /// In each form of this person's pages, and in no other page.
    pub(crate) form: String,
    /// How far the person has read.
    pub(crate) reading: Reading,
    network: IpAddr,
    /// Pages that are open and live.
    live: AtomicUsize,
    /// The same of all people of the key.
    live_of_key: Arc<AtomicUsize>,
    until: Instant,
}

/// One of a person's live pages.
pub(crate) struct Place(Arc<Person>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.live.fetch_sub(1, Ordering::Relaxed);
        self.0.live_of_key.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Person {
    /// The agent as which the person writes.
    pub(crate) fn agent(&self) -> AgentId {
        principal(self.holder.key(), &self.name)
    }

    /// A place for one more live page. `None`: there are as many as there may be.
    pub(crate) fn place(self: &Arc<Person>) -> Option<Place> {
        let place = Place(self.clone());
        let own = self.live.fetch_add(1, Ordering::Relaxed);
        let of_key = self.live_of_key.fetch_add(1, Ordering::Relaxed);
        (own < LIVE_PER_PERSON_MAX && of_key < LIVE_PER_KEY_MAX).then_some(place)
    }
}

struct Link {
    key: Secret,
    name: String,
    until: Instant,
}

#[derive(Default)]
struct Known {
    people: BTreeMap<Print, Arc<Person>>,
    links: BTreeMap<Print, Link>,
    /// Live pages of each key that has some, or is signed in.
    live: BTreeMap<KeyPrint, Arc<AtomicUsize>>,
    /// Attempts of each network, and since when they are counted.
    attempts: BTreeMap<IpAddr, (Instant, u32)>,
}

impl Known {
    /// If as many of these people are signed in as may be, the one who signed in first has to do so again.
    fn make_room(&mut self, most: usize, of: impl Fn(&Person) -> bool) {
        let these = self.people.iter().filter(|(_, person)| of(person));
        if these.clone().count() >= most {
            let first = these.min_by_key(|(_, person)| person.until).map(|(print, _)| *print);
            first.and_then(|print| self.people.remove(&print));
        }
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct Signing(Mutex<Known>);

/// The node has no random bytes: nobody can be let in.
#[derive(Debug)]
pub(crate) struct NoChance;

/// 256 bits that nobody guesses, as a text.
fn drawn() -> Result<String, NoChance> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| NoChance)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn print(secret: &str) -> Print {
    Sha256::digest(secret.as_bytes()).into()
}

impl Signing {
    fn locked(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Signs somebody in, from a network. Returns the secret that the browser shows from now on.
    pub(crate) fn enter(
        &self,
        key: Secret,
        holder: Visitor,
        name: String,
        network: IpAddr,
    ) -> Result<String, NoChance> {
        let (secret, form, now) = (drawn()?, drawn()?, Instant::now());
        let of = holder.key();
        let mut known = self.locked();
        known.people.retain(|_, person| person.until > now);
        known.make_room(SIGNED_IN_PER_KEY_MAX, |person| person.holder.key() == of);
        known.make_room(SIGNED_IN_PER_NETWORK_MAX, |person| person.network == network);
        known.make_room(SIGNED_IN_MAX, |_| true);
        // Pages of people who have signed out count until they are closed.
        known.live.retain(|_, live| Arc::strong_count(live) > 1);
        let live_of_key = known.live.entry(of).or_default().clone();
        let mut same = known.people.values().filter(|one| one.holder.key() == of);
        let reading = same.find(|one| one.name == name).map(|one| one.reading.clone());
        let (reading, live, until) =
            (reading.unwrap_or_default(), AtomicUsize::new(0), now + SIGNED_IN_FOR);
        let person = Person { key, holder, name, form, reading, network, live, live_of_key, until };
        known.people.insert(print(&secret), Arc::new(person));
        Ok(secret)
    }

    /// The person who shows this secret.
    pub(crate) fn person(&self, secret: &str) -> Option<Arc<Person>> {
        let person = self.locked().people.get(&print(secret)).cloned()?;
        (person.until > Instant::now()).then_some(person)
    }

    pub(crate) fn leave(&self, secret: &str) {
        self.locked().people.remove(&print(secret));
    }

    /// A link that signs its opener in with this key, once and soon. `None`: too many wait.
    pub(crate) fn link(&self, key: Secret, name: String) -> Result<Option<String>, NoChance> {
        let (secret, now) = (drawn()?, Instant::now());
        let mut known = self.locked();
        known.links.retain(|_, link| link.until > now);
        let same = known.links.values().filter(|link| link.key.expose() == key.expose()).count();
        if known.links.len() >= LINKS_MAX || same >= LINKS_PER_KEY_MAX {
            return Ok(None);
        }
        known.links.insert(print(&secret), Link { key, name, until: now + LINK_GOOD_FOR });
        Ok(Some(secret))
    }

    /// The key and the name of a link. It is good for nothing more.
    pub(crate) fn opened(&self, secret: &str) -> Option<(Secret, String)> {
        let link = self.locked().links.remove(&print(secret))?;
        (link.until > Instant::now()).then_some((link.key, link.name))
    }

    /// Counts an attempt to sign in. `false`: its network has made too many.
    pub(crate) fn may_try(&self, network: IpAddr) -> bool {
        let now = Instant::now();
        let minute = std::time::Duration::from_secs(60);
        let mut known = self.locked();
        if known.attempts.len() >= NETWORKS_COUNTED_MAX && !known.attempts.contains_key(&network) {
            known.attempts.retain(|_, (since, _)| now.duration_since(*since) < minute);
            if known.attempts.len() >= NETWORKS_COUNTED_MAX {
                known.attempts.pop_first();
            }
        }
        let (since, count) = known.attempts.entry(network).or_insert((now, 0));
        if now.duration_since(*since) >= minute {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        *count <= ATTEMPTS_PER_MINUTE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signing() -> Signing {
        Signing::default()
    }

    fn at(n: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, n])
    }

    #[test]
    fn a_link_is_good_once_and_only_so_many_wait() {
        let signing = signing();
        let link = signing.link(Secret::new("k"), "ada".into()).unwrap().unwrap();
        assert!(signing.opened("another").is_none());
        let (key, name) = signing.opened(&link).unwrap();
        assert_eq!((key.expose(), &*name), ("k", "ada"));
        assert!(signing.opened(&link).is_none(), "once");
        let make = |key: usize| {
            signing.link(Secret::new(key.to_string()), String::new()).unwrap().is_some()
        };
        assert!((0..LINKS_PER_KEY_MAX).all(|_| make(0)) && !make(0), "those of a key");
        assert!((LINKS_PER_KEY_MAX..LINKS_MAX).all(make) && !make(LINKS_MAX), "those of all");
    }

    #[test]
    fn who_signed_in_first_goes_first_when_there_are_too_many() {
        let signing = signing();
        let enter = |name: &str| {
            signing.enter(Secret::new("k"), Visitor::stranger(), name.to_owned(), at(1)).unwrap()
        };
        let first = enter("first");
        assert_eq!(signing.person(&first).unwrap().name, "first");
        let second = enter("second");
        for _ in 0..SIGNED_IN_PER_KEY_MAX - 1 {
            enter("x");
        }
        assert!(signing.person(&first).is_none() && signing.person(&second).is_some());
        signing.leave(&second);
        assert!(signing.person(&second).is_none());
    }

    #[test]
    fn attempts_of_one_network_do_not_count_for_another() {
        let signing = signing();
        for _ in 0..ATTEMPTS_PER_MINUTE {
            assert!(signing.may_try(at(1)));
        }
        assert!(!signing.may_try(at(1)) && signing.may_try(at(2)));
    }

    #[test]
    fn a_persons_live_pages_are_few_and_a_place_is_free_again() {
        let signing = signing();
        let secret =
            signing.enter(Secret::new("k"), Visitor::stranger(), "a".into(), at(1)).unwrap();
        let person = signing.person(&secret).unwrap();
        let mut places: Vec<_> = (0..LIVE_PER_PERSON_MAX).map(|_| person.place()).collect();
        assert!(places.iter().all(Option::is_some) && person.place().is_none());
        places.pop();
        assert!(person.place().is_some());
    }
}
