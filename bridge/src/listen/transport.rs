//! Bytes to frames and back, for sockets and for WebSockets.

use std::{
    future::Future,
    io,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{
    task::yield_now,
    time::{Instant, sleep_until},
};

use crate::{
    delivery::{ending::Ending, outbox::Frame},
    dialect::Heard,
    limits,
};

mod lines;
mod websocket;

pub(crate) use lines::{LineSink, Lines};
pub(crate) use websocket::Texts;

/// Bytes that a connection has read since others had their turn. The runtime counts reads, however much they bring.
#[derive(Debug)]
pub(crate) struct Share {
    ration: Arc<Ration>,
    bytes: usize,
    /// When it began to count.
    since: Instant,
    /// Until then others have their turn.
    until: Option<Instant>,
}

impl Share {
    pub(crate) fn of(ration: Arc<Ration>) -> Share {
        Share { ration, bytes: 0, since: Instant::now(), until: None }
    }

    fn take(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Lets others go first when it is used up: for long, if it was used up quickly. May be dropped, and does not
    /// forget its debt.
    async fn turn(&mut self) {
        if self.bytes >= limits::READ_BYTES_PER_TURN {
            if self.since.elapsed() < limits::READ_TURN_WITHIN {
                self.until = Some(self.ration.take(self.bytes));
            }
            (self.bytes, self.since) = (0, Instant::now());
            yield_now().await;
        }
        if let Some(until) = self.until {
            sleep_until(until).await;
            (self.until, self.since) = (None, Instant::now());
        }
    }

    /// When the client was heard, if a byte came then: while it is not read it is not silent.
    fn heard(&self, heard: Instant) -> Instant {
        self.until.map_or(heard, |until| until.max(heard))
    }
}

/// The common allowance of clients that send much, in the order in which they come. Others do not come here.
#[derive(Debug)]
pub(crate) struct Ration {
    /// When there is some again.
    next: Mutex<Instant>,
}

impl Default for Ration {
    fn default() -> Ration {
        Ration { next: Mutex::new(Instant::now()) }
    }
}

impl Ration {
    /// Takes so much of it: when it is there.
    fn take(&self, bytes: usize) -> Instant {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let here = *next;
        *next = then(here, Instant::now(), bytes);
        here
    }
}

/// When there is some again, if so much of the allowance of `next` is taken now.
fn then(next: Instant, now: Instant, bytes: usize) -> Instant {
    let from = now.checked_sub(limits::READ_SLACK).map_or(now, |it| it.max(next));
    from + limits::READ_TIME_PER_BYTE * u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Where frames come from.
pub(crate) trait Source: Send {
    /// The next one. May be dropped and called again without loss.
    fn next(&mut self) -> impl Future<Output = Result<Heard<'_>, Gone>> + Send;

    /// When the last byte came.
    fn heard(&self) -> Instant;

    /// The client has shown a key: its frames may have so many bytes.
    fn trust(&mut self, frame_bytes_max: usize);
}

/// Where frames go.
pub(crate) trait Sink: Send {
    /// Writes them all, in one write if the system takes them.
    fn write(&mut self, frames: &[Frame]) -> impl Future<Output = io::Result<()>> + Send;

    /// Says that nothing follows, and why.
    fn close(&mut self, ending: Ending) -> impl Future<Output = ()> + Send;
}

/// Why nothing more comes from a client.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Gone {
    #[error("the client has hung up")]
    HungUp,
    #[error("a frame is too large")]
    TooLong,
    #[error("a frame is not UTF-8")]
    NotText,
    #[error("read the connection")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const TURN: usize = limits::READ_BYTES_PER_TURN;

    #[test]
    fn whoever_sends_much_sends_no_more_than_that_in_a_second() {
        let begun = Instant::now();
        let (mut next, mut now, mut bytes) = (begun, begun, 0);
        while now < begun + Duration::from_secs(10) {
            // Timers are late.
            now = now.max(next) + Duration::from_millis(1);
            next = then(next, now, TURN);
            bytes += TURN;
        }
        let due = limits::READ_TIME_PER_BYTE * u32::try_from(bytes).unwrap();
        let took = now - begun;
        assert!(due > took * 9 / 10 && due < took + limits::READ_SLACK * 2, "{due:?} in {took:?}");
        // Who did nothing for an hour may not do everything at once then.
        let hour = now + Duration::from_secs(3_600);
        assert!(then(next, hour, TURN) + limits::READ_SLACK > hour);
    }

    /// Connections of which each has used its share up at once.
    #[tokio::test]
    async fn only_who_sends_much_waits_for_others_who_do_and_does_not_forget_it() {
        let ration = Arc::<Ration>::default();
        let far = Instant::now() + Duration::from_secs(3_600);
        *ration.next.lock().unwrap() = far;
        let earlier = Instant::now() - limits::READ_TURN_WITHIN;
        let mut calm = Share { bytes: TURN, since: earlier, ..Share::of(ration.clone()) };
        calm.turn().await;
        assert_eq!((calm.bytes, calm.until), (0, None));
        let mut hasty = Share { bytes: TURN, ..Share::of(ration.clone()) };
        for _ in 0..3 {
            // Something else happens to the connection meanwhile.
            let turn = Box::pin(hasty.turn());
            assert!(timeout(Duration::from_millis(1), turn).await.is_err());
            assert_eq!(hasty.until, Some(far));
        }
        assert_eq!(hasty.heard(earlier), far, "it is not silent: it is not read");
        assert!(
            *ration.next.lock().unwrap() < far + limits::READ_TIME_PER_BYTE * 300_000,
            "taken once"
        );
        hasty.until = Some(earlier);
        hasty.turn().await;
        assert!(hasty.until.is_none() && hasty.since > earlier);
    }
}
