//! The word at the door: when both ends have shown who they are, the one that was dialled says with
//! one byte whether the other may come in, and if not, why. So a node with an outdated secret learns
//! that, and does not take it for a broken network. Then come yamux's streams.

use std::io;

use futures::future::BoxFuture;
use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, FutureExt};
use libp2p::core::upgrade::{InboundConnectionUpgrade, OutboundConnectionUpgrade, UpgradeInfo};
use libp2p::yamux;

use crate::trouble::{self, Step, Trouble};

/// What is negotiated after noise.
const NAME: &str = "/clawmesh/door/1";

/// The byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    Welcome,
    /// The mesh's secret has changed, and the dialler is no member.
    OldSecret,
}

impl Word {
    fn byte(self) -> u8 {
        match self {
            Word::Welcome => 1,
            Word::OldSecret => 2,
        }
    }

    /// What a refusal is to the dialler. A word of a later version is a refusal, too.
    fn read(byte: u8) -> Result<(), io::Error> {
        let refused = |trouble| Err(trouble::at(Step::Door(trouble), io::Error::other("refused")));
        match byte {
            1 => Ok(()),
            2 => refused(Trouble::OldSecret),
            _ => refused(Trouble::OtherVersion),
        }
    }
}

/// One connection's door. `word`: ours, if we were dialled.
#[derive(Debug, Clone)]
pub(crate) struct Door {
    pub(crate) word: Word,
    pub(crate) streams: yamux::Config,
}

impl UpgradeInfo for Door {
    type Info = &'static str;
    type InfoIter = std::iter::Once<&'static str>;

    fn protocol_info(&self) -> Self::InfoIter {
        std::iter::once(NAME)
    }
}

impl<C> InboundConnectionUpgrade<C> for Door
where
    C: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    type Output = yamux::Muxer<C>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Output>>;

    fn upgrade_inbound(self, mut socket: C, info: Self::Info) -> Self::Future {
        async move {
            socket.write_all(&[self.word.byte()]).await?;
            socket.flush().await?;
            if self.word != Word::Welcome {
                // The dialler hangs up first, when it has read the word: unread bytes of its would
                // take the word with them.
                let _ = socket.read(&mut [0]).await;
                return Err(io::Error::other("not let in"));
            }
            self.streams.upgrade_inbound(socket, info).await
        }
        .boxed()
    }
}

impl<C> OutboundConnectionUpgrade<C> for Door
where
    C: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    type Output = yamux::Muxer<C>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Output>>;

    fn upgrade_outbound(self, mut socket: C, info: Self::Info) -> Self::Future {
        async move {
            let mut word = [0];
            socket.read_exact(&mut word).await?;
            if let Err(refused) = Word::read(word[0]) {
                // An error means that the other end has gone, as it should.
                let _ = socket.close().await;
                return Err(refused);
            }
            self.streams.upgrade_outbound(socket, info).await
        }
        .boxed()
    }
}
