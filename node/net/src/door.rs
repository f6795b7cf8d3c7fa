//! The words at the door: when both ends have shown who they are, each says one byte. The one that was
//! dialled says whether the other may come in, and if not, why: so a node with an outdated secret learns
//! that, and does not take it for a broken network. And either says if the other runs twice. Then come
//! yamux's streams.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use futures::future::BoxFuture;
use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, FutureExt};
use libp2p::core::upgrade::{InboundConnectionUpgrade, OutboundConnectionUpgrade, UpgradeInfo};
use libp2p::yamux;

use crate::pace::{Paced, Place};
use crate::trouble::{self, Step, Trouble};
use crate::twins::Twins;

/// The protocol that is negotiated after noise.
const NAME: &str = "/clawmesh/door/1";

/// The byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    Welcome,
    /// Come in; and another node runs with your identity.
    Twin,
    /// The mesh's secret has changed, and the dialler is no member.
    OldSecret,
}

impl Word {
    fn byte(self) -> u8 {
        match self {
            Word::Welcome => 1,
            Word::OldSecret => 2,
            Word::Twin => 3,
        }
    }

    /// The word, or the dialler's trouble if it may not come in. A word of a later version is a refusal, too.
    fn read(byte: u8) -> Result<Word, io::Error> {
        let refused = |trouble| Err(trouble::at(Step::Door(trouble), io::Error::other("refused")));
        match byte {
            1 => Ok(Word::Welcome),
            3 => Ok(Word::Twin),
            2 => refused(Trouble::OldSecret),
            _ => refused(Trouble::OtherVersion),
        }
    }
}

/// One connection's door. `word`: ours.
#[derive(Debug, Clone)]
pub(crate) struct Door {
    pub(crate) word: Word,
    pub(crate) twins: Arc<Twins>,
    pub(crate) streams: yamux::Config,
    /// Of the other end in the line of those whose circuits are carried.
    pub(crate) place: Place,
}

impl Door {
    async fn say(&self, socket: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        socket.write_all(&[self.word.byte()]).await?;
        socket.flush().await
    }

    /// The word of the other end. An error: we may not come in.
    async fn hear(&self, socket: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
        let mut word = [0];
        socket.read_exact(&mut word).await?;
        if Word::read(word[0])? == Word::Twin && self.twins.told(Instant::now()) {
            tracing::warn!(
                event = "twin",
                "another node runs with the identity of this one, says a peer: stop one of the two, or what both write \
                 is lost"
            );
        }
        Ok(())
    }
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
    type Output = Paced<yamux::Muxer<C>>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Output>>;

    fn upgrade_inbound(self, mut socket: C, info: Self::Info) -> Self::Future {
        async move {
            self.say(&mut socket).await?;
            if self.word == Word::OldSecret {
                // The dialler hangs up first, when it has read the word: unread bytes of its would
                // take the word with them.
                while matches!(socket.read(&mut [0]).await, Ok(1)) {}
                return Err(io::Error::other("not let in"));
            }
            self.hear(&mut socket).await?;
            let streams = self.streams.upgrade_inbound(socket, info).await?;
            Ok(Paced::new(streams, self.place))
        }
        .boxed()
    }
}

impl<C> OutboundConnectionUpgrade<C> for Door
where
    C: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    type Output = Paced<yamux::Muxer<C>>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Output>>;

    fn upgrade_outbound(self, mut socket: C, info: Self::Info) -> Self::Future {
        async move {
            self.say(&mut socket).await?;
            if let Err(refused) = self.hear(&mut socket).await {
                // An error means that the other end has gone, as it should.
                let _ = socket.close().await;
                return Err(refused);
            }
            let streams = self.streams.upgrade_outbound(socket, info).await?;
            Ok(Paced::new(streams, self.place))
        }
        .boxed()
    }
}
