//! The addresses of this machine, as they come and go, and whether it has slept.
//!
//! A laptop that goes from one network to another keeps connections that lead nowhere: TCP says so
//! after minutes. A socket whose address is no longer this machine's fails at once here.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::{AsyncRead, AsyncWrite, StreamExt};
use if_watch::IfEvent;
use if_watch::tokio::IfWatcher;
use libp2p::tcp::tokio::TcpStream;
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::watch;

/// The addresses that this machine has now. Empty until the first are reported, and where the system
/// reports none.
#[derive(Clone, Debug)]
pub(crate) struct Here(watch::Sender<BTreeSet<IpAddr>>);

impl Default for Here {
    fn default() -> Here {
        Here(watch::Sender::new(BTreeSet::new()))
    }
}

impl Here {
    /// `true`: it means something to connections with others.
    pub(crate) fn came(&self, ip: IpAddr) -> bool {
        self.0.send_if_modified(|here| here.insert(ip)) && is_far(ip)
    }

    /// See [`Here::came`].
    pub(crate) fn went(&self, ip: IpAddr) -> bool {
        self.0.send_if_modified(|here| here.remove(&ip)) && is_far(ip)
    }

    /// Comes when this address has gone. Never, if nobody knows of it.
    fn without(&self, ip: IpAddr) -> impl Future<Output = ()> + Send + use<> {
        let mut here = self.0.subscribe();
        async move {
            let there = here.wait_for(|here| here.contains(&ip)).await.is_ok();
            let gone = there && here.wait_for(|here| !here.contains(&ip)).await.is_ok();
            if !gone {
                std::future::pending::<()>().await;
            }
        }
    }
}

/// Containers and virtual machines come and go with addresses that nobody is reached at.
fn is_far(ip: IpAddr) -> bool {
    let near = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    !near && !ip.is_loopback()
}

/// What the system says of its addresses.
pub(crate) struct Interfaces(Option<IfWatcher>);

impl Interfaces {
    pub(crate) fn watch() -> Interfaces {
        let watcher = IfWatcher::new();
        let unseen = |error: &io::Error| {
            tracing::debug!(%error, "the system does not say when addresses come and go");
        };
        Interfaces(watcher.inspect_err(unseen).ok())
    }

    /// The next change. Cancel-safe. Never, if the system says nothing.
    pub(crate) async fn next(&mut self) -> IfEvent {
        while let Some(watcher) = &mut self.0 {
            match watcher.select_next_some().await {
                Ok(event) => return event,
                Err(error) => {
                    tracing::debug!(%error, "the system does not say any more when addresses come and go");
                    self.0 = None;
                }
            }
        }
        std::future::pending().await
    }
}

/// A socket that fails when its own address is no longer this machine's.
pub(crate) struct Rooted<S> {
    socket: S,
    gone: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Rooted<TcpStream> {
    pub(crate) fn new(socket: TcpStream, here: &Here) -> Rooted<TcpStream> {
        let at = socket.0.local_addr().ok().map(|at| at.ip().to_canonical());
        Rooted::at(socket, at, here)
    }
}

impl<S> Rooted<S> {
    fn at(socket: S, at: Option<IpAddr>, here: &Here) -> Rooted<S> {
        let far = at.filter(|ip| !ip.is_loopback());
        let gone = far.map(|ip| Box::pin(here.without(ip)) as Pin<Box<_>>);
        Rooted { socket, gone }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Rooted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if let Some(gone) = &mut self.gone
            && gone.as_mut().poll(cx).is_ready()
        {
            self.gone = None;
            let text = "this machine has lost the address";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::AddrNotAvailable, text)));
        }
        Pin::new(&mut self.socket).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Rooted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_close(cx)
    }
}

/// Whether the machine has slept: [`Instant`] stands still meanwhile, and another clock does not.
#[derive(Debug)]
pub(crate) struct Sleep {
    running: Instant,
    passing: Duration,
}

impl Sleep {
    pub(crate) fn watch() -> Sleep {
        Sleep { running: Instant::now(), passing: passing() }
    }

    /// For how long it has slept since the last call.
    pub(crate) fn slept(&mut self) -> Duration {
        self.between(Instant::now(), passing())
    }

    fn between(&mut self, running: Instant, passing: Duration) -> Duration {
        let ran = running.saturating_duration_since(self.running);
        let passed = passing.saturating_sub(self.passing);
        (self.running, self.passing) = (running, passing);
        passed.saturating_sub(ran)
    }
}

/// A clock that goes on while the machine sleeps, and that nobody sets.
fn passing() -> Duration {
    #[cfg(target_os = "linux")]
    let clock = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::Monotonic;
    let time = clock_gettime(clock);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or_default(), nanos.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use futures::AsyncReadExt;

    use super::*;

    /// Nothing comes over it.
    struct Silence;

    impl AsyncRead for Silence {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &mut [u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Pending
        }
    }

    #[tokio::test]
    async fn a_socket_fails_when_its_address_goes_and_another_does_not() {
        let (here, own, other) = (Here::default(), [10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        assert!(here.came(own) && here.came(other) && !here.came(own));
        let mut rooted = Rooted::at(Silence, Some(own), &here);
        let mut nothing = [0];
        let mut waits = async |it: &mut Rooted<Silence>| {
            poll_fn(|cx| Poll::Ready(Pin::new(&mut *it).poll_read(cx, &mut nothing))).await
        };
        assert!(waits(&mut rooted).await.is_pending());
        assert!(here.went(other));
        assert!(waits(&mut rooted).await.is_pending());
        let gone = tokio::spawn(async move { rooted.read(&mut [0]).await.unwrap_err() });
        assert!(here.went(own));
        assert_eq!(gone.await.unwrap().kind(), io::ErrorKind::AddrNotAvailable);
    }

    #[tokio::test]
    async fn an_address_that_the_system_never_named_is_not_missed() {
        let (here, own) = (Here::default(), [10, 0, 0, 1].into());
        let mut rooted = Rooted::at(Silence, Some(own), &here);
        here.came([10, 0, 0, 2].into());
        here.went([10, 0, 0, 2].into());
        let read = poll_fn(|cx| Poll::Ready(Pin::new(&mut rooted).poll_read(cx, &mut [0]))).await;
        assert!(read.is_pending());
    }

    #[test]
    fn addresses_of_one_link_and_of_this_machine_are_no_news() {
        let here = Here::default();
        for near in ["127.0.0.1", "::1", "fe80::1", "169.254.1.1"] {
            assert!(!here.came(near.parse().unwrap()), "{near}");
        }
        assert!(here.came("fd00::1".parse().unwrap()));
    }

    #[test]
    fn sleep_is_what_one_clock_has_and_the_other_has_not() {
        let mut sleep = Sleep::watch();
        let (running, passing) = (sleep.running, sleep.passing);
        let s = Duration::from_secs;
        assert_eq!(sleep.between(running + s(3), passing + s(3)), s(0));
        assert_eq!(sleep.between(running + s(4), passing + s(64)), s(60));
        assert_eq!(sleep.between(running + s(5), passing + s(65)), s(0), "told once");
        assert!(sleep.slept() < s(1_000));
    }
}
