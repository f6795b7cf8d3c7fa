//! Wakes the task of a connection; while a turn is told, not before its end.
//!
//! To wake a task from outside of its runtime is a call of the system, and a task that is woken by the first of a turn's events
//! writes that one alone, sleeps, and is woken by the next one. So the engine's thread collects the bells that it has rung, and
//! each sounds once.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::Notify;

thread_local! {
    /// Bells that this thread has rung and not sounded. `None`: they sound at once.
    static HELD: RefCell<Option<Vec<Arc<Bell>>>> = const { RefCell::new(None) };
}

/// For the one task that waits for it.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    sound: Notify,
    is_held: AtomicBool,
}

impl Bell {
    /// The task is woken, or does not fall asleep: now, or when this thread's [`Hold`] ends.
    pub(crate) fn ring(self: &Arc<Bell>) {
        let held = HELD.with_borrow_mut(|held| {
            let Some(held) = held else { return false };
            if !self.is_held.swap(true, Ordering::AcqRel) {
                held.push(self.clone());
            }
            true
        });
        if !held {
            self.sound.notify_one();
        }
    }

    /// Until it sounds; at once, if it has sounded since the last time.
    pub(crate) async fn rung(&self) {
        self.sound.notified().await;
    }
}

/// While it lives, bells that its thread rings are held; dropped, they sound. One at a time in a thread: of two the first
/// that ends sounds all.
#[derive(Debug)]
pub struct Hold(());

impl Hold {
    pub(crate) fn new() -> Hold {
        HELD.with_borrow_mut(|held| {
            held.get_or_insert_default();
        });
        Hold(())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        for bell in HELD.take().unwrap_or_default() {
            // Before it sounds: one that is rung from now on sounds again.
            bell.is_held.store(false, Ordering::Release);
            bell.sound.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Waker},
    };

    use super::*;

    fn has_rung(bell: &Bell) -> bool {
        pin!(bell.rung()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn a_bell_that_is_held_sounds_once_and_at_the_end() {
        let bells: [Arc<Bell>; 2] = Default::default();
        let hold = Hold::new();
        for bell in [&bells[0], &bells[1], &bells[0]] {
            bell.ring();
        }
        assert!(!bells.iter().any(|bell| has_rung(bell)));
        drop(hold);
        assert!(bells.iter().all(|bell| has_rung(bell)));
        assert!(!bells.iter().any(|bell| has_rung(bell)));
        // Held again, and without a hold.
        let hold = Hold::new();
        bells[0].ring();
        drop(hold);
        assert!(has_rung(&bells[0]));
        bells[0].ring();
        assert!(has_rung(&bells[0]));
    }

    #[test]
    fn a_bell_that_another_thread_holds_sounds_at_once_all_the_same() {
        let bell = Arc::new(Bell::default());
        let _hold = Hold::new();
        bell.ring();
        std::thread::scope(|scope| scope.spawn(|| bell.ring()).join().unwrap());
        assert!(has_rung(&bell));
    }
}
