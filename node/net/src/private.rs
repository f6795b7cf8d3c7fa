//! A connection under a pre-shared key: on the wire as libp2p has it (specs/pnet: 24 random bytes
//! each way, then XSalsa20 over everything), but that the door finds out by the first bytes which
//! of several keys it is. Beneath it the other end proves nothing yet: its id, and that nobody
//! listens, is noise's concern.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use salsa20::XSalsa20;
use salsa20::cipher::{KeyIvInit, StreamCipher};

use crate::keys::Noted;
use crate::limits::{PRIVATE_BYTES, PRIVATE_FIRST_BYTES};
use crate::settings::Secret;

/// The first words of every dialler: it begins to negotiate (multistream-select).
pub(crate) const FIRST: &[u8; 20] = b"\x13/multistream/1.0.0\n";
/// The first words of a guest that was invited and has no key of the mesh yet.
pub(crate) const GUEST: &[u8; 20] = b"\x13clawmesh/invited/1\n";

/// Whether the first bytes, read with this key, are those.
pub(crate) fn reads_as(
    key: &Secret,
    nonce: &[u8; 24],
    first: &[u8; 20],
    expected: &[u8; 20],
) -> bool {
    let mut plain = *first;
    cipher(key, nonce).apply_keystream(&mut plain);
    plain == *expected
}

fn cipher(key: &Secret, nonce: &[u8; 24]) -> XSalsa20 {
    XSalsa20::new((&*key.0).into(), nonce.into())
}

/// See the module.
pub(crate) struct Private<S> {
    socket: S,
    read: XSalsa20,
    write: XSalsa20,
    /// Read already, in plain.
    ahead: Vec<u8>,
    /// Encrypted, and not written yet from `written` on.
    queued: Vec<u8>,
    written: usize,
    _noted: Option<Noted>,
}

/// The bytes that came before a key is chosen at the door.
pub(crate) struct Opening {
    ours: [u8; 24],
    pub(crate) theirs: [u8; 24],
    /// Encrypted; at least as long as [`FIRST`].
    bytes: Vec<u8>,
}

impl Opening {
    pub(crate) fn first(&self) -> [u8; 20] {
        let mut first = [0; 20];
        first.copy_from_slice(&self.bytes[..20]);
        first
    }

    /// The connection, with the key that was recognised.
    pub(crate) fn with<S>(self, socket: S, key: &Secret, noted: Option<Noted>) -> Private<S> {
        let mut private = Private::new(socket, key, &self.ours, &self.theirs, noted);
        private.ahead = self.bytes;
        private.read.apply_keystream(&mut private.ahead);
        private
    }
}

/// The dialling side.
pub(crate) async fn dial<S: AsyncRead + AsyncWrite + Unpin>(
    mut socket: S,
    key: &Secret,
    noted: Option<Noted>,
) -> io::Result<Private<S>> {
    let (ours, theirs) = nonces(&mut socket).await?;
    Ok(Private::new(socket, key, &ours, &theirs, noted))
}

/// The other side, up to the first bytes.
pub(crate) async fn meet<S: AsyncRead + AsyncWrite + Unpin>(socket: &mut S) -> io::Result<Opening> {
    let (ours, theirs) = nonces(socket).await?;
    // With the bytes that are there besides: a socket that is closed with unread bytes takes our
    // last words with it.
    let mut bytes = vec![0; PRIVATE_FIRST_BYTES];
    let mut filled = 0;
    while filled < FIRST.len() {
        match socket.read(&mut bytes[filled..]).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            more => filled += more,
        }
    }
    bytes.truncate(filled);
    Ok(Opening { ours, theirs, bytes })
}

async fn nonces<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut S,
) -> io::Result<([u8; 24], [u8; 24])> {
    let (mut ours, mut theirs) = ([0; 24], [0; 24]);
    getrandom::fill(&mut ours).map_err(io::Error::other)?;
    socket.write_all(&ours).await?;
    socket.flush().await?;
    socket.read_exact(&mut theirs).await?;
    Ok((ours, theirs))
}

impl<S> Private<S> {
    fn new(
        socket: S,
        key: &Secret,
        ours: &[u8; 24],
        theirs: &[u8; 24],
        noted: Option<Noted>,
    ) -> Private<S> {
        let (read, write) = (cipher(key, theirs), cipher(key, ours));
        let (ahead, queued) = Default::default();
        Private { socket, read, write, ahead, queued, written: 0, _noted: noted }
    }

    /// Takes the greeting that the key was recognised by off what is read.
    pub(crate) fn without_greeting(mut self) -> Private<S> {
        self.ahead.drain(..FIRST.len().min(self.ahead.len()));
        self
    }
}

impl<S: AsyncWrite + Unpin> Private<S> {
    /// Writes what is queued to the socket.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.queued.len() {
            let rest = &self.queued[self.written..];
            match ready!(Pin::new(&mut self.socket).poll_write(cx, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                some => self.written += some,
            }
        }
        self.queued.clear();
        self.written = 0;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Private<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if !self.ahead.is_empty() {
            let some = buffer.len().min(self.ahead.len());
            buffer[..some].copy_from_slice(&self.ahead[..some]);
            self.ahead.drain(..some);
            return Poll::Ready(Ok(some));
        }
        let some = ready!(Pin::new(&mut self.socket).poll_read(cx, buffer))?;
        self.read.apply_keystream(&mut buffer[..some]);
        Poll::Ready(Ok(some))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Private<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        // Encrypted bytes have to be written, in this order: so they are kept until there is room
        // for more.
        if self.queued.len() >= PRIVATE_BYTES {
            ready!(self.poll_drain(cx))?;
        }
        let some = bytes.len().min(PRIVATE_BYTES - self.queued.len());
        let from = self.queued.len();
        self.queued.extend_from_slice(&bytes[..some]);
        let Private { write, queued, .. } = &mut *self;
        write.apply_keystream(&mut queued[from..]);
        Poll::Ready(Ok(some))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.socket).poll_close(cx)
    }
}

#[cfg(test)]
mod tests {
    use libp2p::pnet::{PnetConfig, PreSharedKey};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    const KEY: [u8; 32] = [7; 32];

    /// Two ends of a connection.
    async fn pair() -> (Socket, Socket) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let dialled = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (Socket(dialled), Socket(listener.accept().await.unwrap().0))
    }

    #[derive(Debug)]
    struct Socket(TcpStream);

    impl AsyncRead for Socket {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buffer: &mut [u8],
        ) -> Poll<io::Result<usize>> {
            let mut read = tokio::io::ReadBuf::new(buffer);
            ready!(tokio::io::AsyncRead::poll_read(Pin::new(&mut self.0), cx, &mut read))?;
            Poll::Ready(Ok(read.filled().len()))
        }
    }

    impl AsyncWrite for Socket {
        fn poll_write(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            tokio::io::AsyncWrite::poll_write(Pin::new(&mut self.0), cx, bytes)
        }

        fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            tokio::io::AsyncWrite::poll_flush(Pin::new(&mut self.0), cx)
        }

        fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            tokio::io::AsyncWrite::poll_shutdown(Pin::new(&mut self.0), cx)
        }
    }

    /// More than the socket takes at once, both ways.
    async fn speak(
        mut a: impl AsyncRead + AsyncWrite + Unpin,
        mut b: impl AsyncRead + AsyncWrite + Unpin,
    ) {
        let long: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
        let (mut there, mut back) = (vec![0; FIRST.len() + long.len()], vec![0; 5]);
        let said = async {
            a.write_all(FIRST).await.unwrap();
            a.write_all(&long).await.unwrap();
            a.flush().await.unwrap();
            a.read_exact(&mut back).await.unwrap();
        };
        let heard = async {
            b.read_exact(&mut there).await.unwrap();
            b.write_all(b"heard").await.unwrap();
            b.flush().await.unwrap();
        };
        tokio::join!(said, heard);
        assert_eq!(back, b"heard");
        assert_eq!(there[..FIRST.len()], *FIRST);
        assert!(there[FIRST.len()..] == long);
    }

    #[tokio::test]
    async fn it_speaks_with_itself_and_with_libp2p() {
        let key = Secret::from(KEY);
        let theirs = || PnetConfig::new(PreSharedKey::new(KEY));
        let door = async |mut socket: Socket| {
            let opening = meet(&mut socket).await.unwrap();
            assert!(reads_as(&key, &opening.theirs, &opening.first(), FIRST));
            let other = Secret::from([8; 32]);
            assert!(!reads_as(&other, &opening.theirs, &opening.first(), FIRST));
            opening.with(socket, &key, None)
        };
        // The door is there when something was said.
        let (a, b) = pair().await;
        let a = async {
            let mut a = dial(a, &key, None).await.unwrap();
            a.write_all(FIRST).await.unwrap();
            a.flush().await.unwrap();
            a
        };
        let (a, b) = tokio::join!(a, door(b));
        speak(a, b.without_greeting()).await;
        let (a, b) = pair().await;
        let a = async {
            let mut a = theirs().handshake(a).await.unwrap();
            a.write_all(FIRST).await.unwrap();
            a.flush().await.unwrap();
            a
        };
        let (a, b) = tokio::join!(a, door(b));
        speak(a, b.without_greeting()).await;
        let (a, b) = pair().await;
        let (a, b) = tokio::join!(dial(a, &key, None), theirs().handshake(b));
        speak(a.unwrap(), b.unwrap()).await;
    }
}
