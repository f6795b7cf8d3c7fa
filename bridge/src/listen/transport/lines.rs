//! NDJSON over a byte stream.

use std::{io, ops::Range};

use bytes::Buf;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::Instant,
};

use super::{Gone, Share, Sink, Source};
use crate::{
    delivery::{ending::Ending, outbox::Frame},
    dialect::Heard,
    limits::{self, FRAME_BYTES_MAX},
};

/// The end of a line.
const NEWLINE: &[u8] = b"\n";

/// Lines of a client.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    io: R,
    buffer: Vec<u8>,
    /// Where the first line that was not taken begins.
    start: usize,
    /// Up to here there is no newline after `start`.
    searched: usize,
    /// The last read took all that there was room for: the client says much, and is read in larger pieces.
    filled: bool,
    heard: Instant,
    /// The longest line, newline included.
    limit: usize,
    share: Share,
}

impl<R: AsyncRead + Unpin + Send> Lines<R> {
    pub(crate) fn new(io: R, share: Share) -> Lines<R> {
        Lines {
            io,
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            filled: false,
            heard: Instant::now(),
            limit: limits::STRANGER_LINE_BYTES_MAX,
            share,
        }
    }

    /// Takes a line that is complete in the buffer: where it is, without its newline.
    fn line(&mut self) -> Result<Option<Range<usize>>, Gone> {
        let rest = self.buffer.get(self.searched..).unwrap_or_default();
        let Some(newline) = rest.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.buffer.len();
            // A newline to come would be one byte more.
            let too_long = self.buffer.len() - self.start >= self.limit;
            return if too_long { Err(Gone::TooLong) } else { Ok(None) };
        };
        let end = self.searched + newline;
        if end - self.start >= self.limit {
            return Err(Gone::TooLong);
        }
        let line = self.start..end;
        self.start = end + 1;
        self.searched = self.start;
        Ok(Some(line))
    }

    /// Makes room for more; gives back the growth of a long line.
    fn make_room(&mut self) {
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        if self.buffer.capacity() > limits::READ_BYTES_KEPT
            && self.buffer.len() < limits::READ_BYTES_MIN
        {
            self.buffer.shrink_to(limits::READ_BYTES_MIN);
        }
        if self.filled {
            let more = limits::READ_BYTES_KEPT.saturating_sub(self.buffer.len());
            self.buffer.reserve_exact(more);
        }
        let free = self.buffer.capacity() - self.buffer.len();
        if free < limits::READ_BYTES_MIN / 2 {
            let more = self.buffer.len().max(limits::READ_BYTES_MIN);
            // Never much above the longest line.
            self.buffer.reserve_exact(more.min(FRAME_BYTES_MAX / 4));
        }
    }
}

impl<R: AsyncRead + Unpin + Send> Source for Lines<R> {
    async fn next(&mut self) -> Result<Heard<'_>, Gone> {
        loop {
            self.share.turn().await;
            if let Some(line) = self.line()? {
                let line = self.buffer.get(line).unwrap_or_default();
                return std::str::from_utf8(line).map(Heard::Text).map_err(|_| Gone::NotText);
            }
            self.make_room();
            let free = self.buffer.capacity() - self.buffer.len();
            let read = self.io.read_buf(&mut self.buffer).await;
            let read = read.map_err(|error| Gone::Broken(error.into()))?;
            if read == 0 {
                return Err(Gone::HungUp);
            }
            self.filled = read == free;
            self.share.take(read);
            self.heard = Instant::now();
        }
    }

    fn heard(&self) -> Instant {
        self.share.heard(self.heard)
    }

    fn trust(&mut self, frame_bytes_max: usize) {
        self.limit = frame_bytes_max.min(FRAME_BYTES_MAX);
    }
}

/// Lines to a client.
#[derive(Debug)]
pub(crate) struct LineSink<W>(pub(crate) W);

impl<W: AsyncWrite + Unpin + Send> Sink for LineSink<W> {
    async fn write(&mut self, frames: &[Frame]) -> io::Result<()> {
        let lines = || frames.iter().flat_map(Frame::parts).filter(|line| !line.is_empty());
        let mut first = lines();
        if let (Some(line), None) = (first.next(), first.next()) {
            // As it is, and not copied.
            return self.0.write_all_buf(&mut line.clone().chain(NEWLINE)).await;
        }
        let mut all = Vec::with_capacity(lines().map(|line| line.len() + NEWLINE.len()).sum());
        for line in lines() {
            all.extend_from_slice(line);
            all.extend_from_slice(NEWLINE);
        }
        self.0.write_all(&all).await
    }

    async fn close(&mut self, _: Ending) {
        // The client is gone already, or will see the end of the stream either way.
        drop(self.0.shutdown().await);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    };

    use super::*;

    /// What comes out when `parts` are read one by one.
    async fn lines(parts: &[&[u8]]) -> (Vec<String>, Gone) {
        let mut io = tokio_test_io(parts);
        let mut got = Vec::new();
        let mut lines = Lines::new(&mut io, share());
        lines.trust(FRAME_BYTES_MAX);
        loop {
            match lines.next().await {
                Ok(Heard::Text(line)) => got.push(line.to_owned()),
                Ok(Heard::Binary) => unreachable!("lines are text"),
                Err(gone) => return (got, gone),
            }
        }
    }

    /// A reader that gives one part per read.
    fn tokio_test_io(parts: &[&[u8]]) -> Parts {
        Parts(parts.iter().map(|part| part.to_vec()).collect())
    }

    struct Parts(std::collections::VecDeque<Vec<u8>>);

    impl AsyncRead for Parts {
        fn poll_read(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
            into: &mut tokio::io::ReadBuf<'_>,
        ) -> std::task::Poll<io::Result<()>> {
            if let Some(mut part) = self.0.pop_front() {
                let rest = part.split_off(part.len().min(into.remaining()));
                into.put_slice(&part);
                if !rest.is_empty() {
                    self.0.push_front(rest);
                }
            }
            std::task::Poll::Ready(Ok(()))
        }
    }

    fn share() -> Share {
        Share::of(Arc::default())
    }

    const PING: &[u8] = b"{\"type\":\"ping\"}\n";

    #[tokio::test]
    async fn frames_may_come_in_any_pieces() {
        let (got, gone) = lines(&[PING, &PING[..3], &PING[3..], PING]).await;
        assert!(matches!(gone, Gone::HungUp));
        assert_eq!(got.len(), 3);
        assert!(got.iter().all(|line| line.as_bytes() == &PING[..PING.len() - 1]));
        let all = [PING, PING, b"nonsense\n", PING].concat();
        let bytes: Vec<&[u8]> = all.chunks(1).collect();
        let (got, _) = lines(&bytes).await;
        let ping = &got[0];
        assert_eq!(got, [ping, ping, "nonsense", ping]);
    }

    /// Else whoever else this thread serves waits for as long as they come.
    #[tokio::test]
    async fn who_sends_long_lines_without_end_takes_turns_with_others() {
        const LINES: usize = 8;
        let turns = Arc::new(AtomicUsize::new(0));
        let counted = turns.clone();
        let other = tokio::spawn(async move {
            loop {
                counted.fetch_add(1, Relaxed);
                tokio::task::yield_now().await;
            }
        });
        let mut line = PING[..PING.len() - 1].to_vec();
        line.resize(FRAME_BYTES_MAX - 1, b' ');
        line.push(b'\n');
        let (got, _) = lines(&[&line[..]; LINES]).await;
        other.abort();
        assert_eq!(got.len(), LINES);
        let turns = turns.load(Relaxed);
        assert!(turns >= LINES * 3, "{turns} turns in {LINES} lines");
    }

    #[tokio::test]
    async fn a_line_may_have_one_mebibyte_with_its_newline_and_no_byte_more() {
        let line = |len: usize| {
            let mut line = PING[..PING.len() - 1].to_vec();
            line.resize(len - 1, b' ');
            line.push(b'\n');
            line
        };
        let (got, gone) = lines(&[&line(FRAME_BYTES_MAX), PING]).await;
        assert_eq!(got.len(), 2);
        assert!(matches!(gone, Gone::HungUp));
        let (got, gone) = lines(&[PING, &line(FRAME_BYTES_MAX + 1), PING]).await;
        assert_eq!(got.len(), 1);
        assert!(matches!(gone, Gone::TooLong));
        let long = line(FRAME_BYTES_MAX + 1);
        let (got, gone) =
            lines(&[&long[..FRAME_BYTES_MAX - 9], &long[FRAME_BYTES_MAX - 9..]]).await;
        assert!(got.is_empty() && matches!(gone, Gone::TooLong));
        let endless = vec![b'x'; FRAME_BYTES_MAX];
        let (got, gone) = lines(&[&endless]).await;
        assert!(got.is_empty());
        assert!(matches!(gone, Gone::TooLong));
    }

    #[tokio::test]
    async fn what_is_not_utf_8_is_the_end() {
        let (got, gone) = lines(&[PING, b"\xff\xfe\n", PING]).await;
        assert_eq!(got.len(), 1);
        assert!(matches!(gone, Gone::NotText));
    }

    #[tokio::test]
    async fn a_stranger_may_not_send_as_much() {
        let long = vec![b'x'; limits::STRANGER_LINE_BYTES_MAX];
        let mut io = tokio_test_io(&[PING, &long]);
        let mut lines = Lines::new(&mut io, share());
        assert!(lines.next().await.is_ok());
        assert!(matches!(lines.next().await, Err(Gone::TooLong)));
    }

    #[tokio::test]
    async fn a_long_line_leaves_no_large_buffer_behind() {
        let mut long = vec![b' '; FRAME_BYTES_MAX - 1];
        long.push(b'\n');
        let mut io = tokio_test_io(&[&long, PING]);
        let mut lines = Lines::new(&mut io, share());
        lines.trust(FRAME_BYTES_MAX);
        assert!(matches!(lines.next().await, Ok(Heard::Text(line)) if line.trim().is_empty()));
        assert!(lines.next().await.is_ok());
        assert!(lines.next().await.is_err());
        assert!(lines.buffer.capacity() <= limits::READ_BYTES_KEPT, "{}", lines.buffer.capacity());
    }
}
