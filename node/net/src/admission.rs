//! Those who come with an invitation: they show who they are, get one answer, and the connection
//! ends. Nothing of the mesh is said to them before, and no swarm sees them.

use std::io;
use std::time::Duration;

use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use libp2p::core::Endpoint;
use libp2p::core::transport::{DialOpts, PortUse};
use libp2p::core::upgrade::{InboundConnectionUpgrade, OutboundConnectionUpgrade};
use libp2p::identity::Keypair;
use libp2p::{Transport, noise, tcp};
use tokio::time::timeout;

use crate::address::PeerAddress;
use crate::book::{Due, Target};
use crate::dial;
use crate::identity::node_of;
use crate::keys::{InvitationId, Keys};
use crate::limits::{ADMISSION_BYTES_MAX, HANDSHAKE_TIMEOUT};
use crate::private::{self, GUEST, Private};
use crate::settings::Secret;
use crate::trouble::{self, NoLink, Trouble};
use crate::web::WebTransport;

/// The protocol that noise is negotiated as.
const NOISE: &str = "/noise";
/// Connecting, the handshakes, and the inviter's disk.
const ASK_TIMEOUT: Duration = HANDSHAKE_TIMEOUT.saturating_mul(2);

/// Why an invitation was not answered.
#[derive(Debug, thiserror::Error)]
pub enum AdmissionError {
    /// Nobody is at any of the addresses: why not.
    #[error("{0}")]
    Unreachable(NoLink),
    /// Somebody is there, and hung up at once: it does not know the invitation, or is another node.
    #[error("the node at {0} does not know this invitation")]
    Unknown(String),
    /// Another node than the one that invited.
    #[error("another node answered at {0}")]
    Other(String),
    /// A bug.
    #[error("set up a connection: {0}")]
    Setup(String),
}

/// Shows the invitation whose key this is to the node that made it, as the node of `secret_key`,
/// and returns what it answers. `at` names that node.
///
/// # Errors
/// See [`AdmissionError`]: of several addresses what the one said that came furthest.
pub async fn ask_admission(
    secret_key: &Secret,
    invitation: &Secret,
    at: &[PeerAddress],
) -> Result<Vec<u8>, AdmissionError> {
    let setup = |error: String| AdmissionError::Setup(error);
    let mut seed = *secret_key.0;
    let keypair =
        Keypair::ed25519_from_bytes(&mut seed).map_err(|error| setup(error.to_string()))?;
    let noise = noise::Config::new(&keypair).map_err(|error| setup(error.to_string()))?;
    let mut furthest = None;
    for peer in at {
        match timeout(ASK_TIMEOUT, ask_at(&noise, invitation, peer)).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(AdmissionError::Unreachable(why))) => {
                furthest.get_or_insert(AdmissionError::Unreachable(why));
            }
            Ok(Err(error)) => furthest = Some(error),
            Err(_) => {
                let text = format!("{}: timed out: nothing answers there", peer.address);
                let silent = AdmissionError::Unreachable(NoLink::new(Trouble::TimedOut, text));
                furthest.get_or_insert(silent);
            }
        }
    }
    let nowhere = NoLink::new(Trouble::Other, "no address is known: the ticket names none");
    Err(furthest.unwrap_or(AdmissionError::Unreachable(nowhere)))
}

async fn ask_at(
    noise: &noise::Config,
    invitation: &Secret,
    peer: &PeerAddress,
) -> Result<Vec<u8>, AdmissionError> {
    let shown = peer.address.to_string();
    let target = Target::Seed(peer.address.clone());
    let found =
        dial::resolve(Due { target, addresses: vec![peer.address.clone()], relay: None }).await;
    let tcp = tcp::tokio::Transport::new(tcp::Config::default().nodelay(true));
    let web = WebTransport::new(tcp, None);
    let mut transport = web.map_err(|error| AdmissionError::Setup(error.to_string()))?;
    let (mut socket, mut why) = (None, found.error);
    for address in found.addresses {
        let how = DialOpts { role: Endpoint::Dialer, port_use: PortUse::New };
        let Ok(dialled) = transport.dial(address, how) else { continue };
        match dialled.await {
            Ok(reached) => {
                socket = Some(reached);
                break;
            }
            Err(error) => {
                let reason = trouble::failed(&error).map_or(&error, |failed| &failed.error);
                let (trouble, text) = dial::unreached(reason);
                why = Some(NoLink::new(trouble, format!("{shown}: {text}")));
            }
        }
    }
    let Some(socket) = socket else {
        let unknown = || NoLink::new(Trouble::Unreachable, format!("{shown}: cannot be dialled"));
        return Err(AdmissionError::Unreachable(why.unwrap_or_else(unknown)));
    };
    // A node that does not know the key hangs up, in any way.
    let unknown = |_: io::Error| AdmissionError::Unknown(shown.clone());
    let mut private = private::dial(socket, invitation, None).await.map_err(unknown)?;
    private.write_all(GUEST).await.map_err(unknown)?;
    let spoken = noise.clone().upgrade_outbound(private, NOISE).await;
    let (inviter, mut stream) = spoken.map_err(|_| AdmissionError::Unknown(shown.clone()))?;
    if node_of(&inviter) != peer.node {
        return Err(AdmissionError::Other(shown));
    }
    read_answer(&mut stream).await.map_err(unknown)
}

async fn read_answer(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).await?;
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if length > ADMISSION_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer).await?;
    stream.close().await?;
    Ok(answer)
}

/// At the inviter's door. Always ends in what the swarm takes for a connection that failed.
pub(crate) async fn answer<S>(
    private: Private<S>,
    noise: noise::Config,
    keys: &Keys,
    invitation: InvitationId,
) -> io::Error
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    match try_answer(private.without_greeting(), noise, keys, invitation).await {
        Ok(()) => io::Error::other("a guest was answered"),
        Err(error) => error,
    }
}

async fn try_answer<S>(
    private: Private<S>,
    noise: noise::Config,
    keys: &Keys,
    invitation: InvitationId,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (guest, mut stream) =
        noise.upgrade_inbound(private, NOISE).await.map_err(io::Error::other)?;
    let guest = node_of(&guest).ok_or(io::ErrorKind::InvalidData)?;
    let doorkeeper = keys.doorkeeper().ok_or(io::ErrorKind::NotConnected)?;
    let thinking = tokio::task::spawn_blocking(move || doorkeeper.answer(invitation, guest));
    let answer = thinking.await.map_err(io::Error::other)?;
    let length = u32::try_from(answer.len()).map_err(io::Error::other)?;
    stream.write_all(&length.to_be_bytes()).await?;
    stream.write_all(&answer).await?;
    stream.flush().await?;
    // The guest hangs up first, when it has read it.
    let _ = stream.read(&mut [0]).await;
    Ok(())
}
